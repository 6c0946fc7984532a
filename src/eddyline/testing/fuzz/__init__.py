"""The differential fuzzer: random schemas, changes and views; PostgreSQL and DuckDB say what is right."""
