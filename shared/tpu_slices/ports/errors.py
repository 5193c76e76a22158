"""What an adapter or a flow raises, and what becomes of the message: see `tpu_slices.app.handlers`."""

from __future__ import annotations


class Temporary(Exception):
    """Nothing is wrong with the message: let it come back."""


class Permanent(Exception):
    """The message can never be served: it is recorded, told, and acknowledged."""


class StaleRecord(Temporary):
    """Somebody else wrote a record since it was read: look again."""
