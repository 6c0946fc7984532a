"""Plans: the bag algebra (``relation``), its rewrites (``optimize``), the dataflow (``lower``), shortcuts (``fast_path``).

``docs/planning.md`` tells the whole way.
"""
