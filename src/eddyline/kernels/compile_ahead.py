"""``python -m eddyline.kernels.compile_ahead``: fills the kernel cache from the last kernel to the first."""

from __future__ import annotations

from eddyline.kernels.registry import warm_backwards

if __name__ == "__main__":
    warm_backwards()
