"""Tests of the measurements: what they compare, not how fast it is."""
