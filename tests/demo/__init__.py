"""The demo on a few days of its records."""
