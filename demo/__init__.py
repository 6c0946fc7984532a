"""The main job on real data: a year of flights streams through live views, checked against DuckDB."""
