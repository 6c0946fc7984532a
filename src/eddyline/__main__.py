"""``python -m eddyline``: the ``eddyline`` command."""

from __future__ import annotations

import sys

from eddyline.frontends.command_line import main

if __name__ == "__main__":
    sys.exit(main())
