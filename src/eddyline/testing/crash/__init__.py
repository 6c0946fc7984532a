"""Databases in directories whose process is killed at random instants under load."""
