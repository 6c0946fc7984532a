"""The whole engine against PostgreSQL and DuckDB."""
