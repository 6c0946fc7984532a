"""Eddyline: an incremental-view-maintenance SQL database in one Python process."""
