"""Measurements, side by side with other engines on the same files.  They report; they never gate."""
