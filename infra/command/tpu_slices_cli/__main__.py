"""Entry point of `python -m tpu_slices_cli`: the same as `slices`."""

from __future__ import annotations

from tpu_slices_cli.app import main

if __name__ == "__main__":
    main()
