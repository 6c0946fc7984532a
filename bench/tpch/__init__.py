"""TPC-H's 22 queries as indexed views: building them, and following changes of the orders, beside DuckDB."""
