"""Incremental operators, one file each."""
