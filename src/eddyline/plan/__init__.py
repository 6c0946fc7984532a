"""Plans: the bag algebra (``relation``), its rewrites (``optimize``), dataflows (``lower``), shortcuts (``fast_path``).

``docs/planning.md`` tells the whole way.
"""
