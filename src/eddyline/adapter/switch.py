"""Settings that are on or off, as SQL gives and shows them."""

from __future__ import annotations

from typing import Final

from eddyline.errors import make_error

__all__ = ["on_or_off"]

_TEXTS: Final = {
    **dict.fromkeys(("on", "true", "yes", "1"), "on"),
    **dict.fromkeys(("off", "false", "no", "0"), "off"),
}


def on_or_off(name: str, text: str) -> str:
    """``on`` or ``off``; 22023 for anything else."""
    value = _TEXTS.get(text.strip().lower())
    if value is None:
        raise make_error("22023", f'parameter "{name}" requires a Boolean value')
    return value
