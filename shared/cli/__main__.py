"""`python -m shared.cli`: the same as `slices`."""

from __future__ import annotations

from shared.cli.app import main

if __name__ == "__main__":
    main()
