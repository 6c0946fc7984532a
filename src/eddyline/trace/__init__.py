"""Arranged collections: sorted runs, spines of runs merged by and by, handles that hold history, and their reads."""
