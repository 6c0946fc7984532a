"""Rewrites of ``Let``-free relations, one per file; ``plan.optimize`` holds their order."""
