"""The errors that adapters and flows raise; `tpu_slices.app.handlers` describes how each message is answered."""

from __future__ import annotations


class Temporary(Exception):
    """Nothing is wrong with the message: it is redelivered."""


class Permanent(Exception):
    """The message can never be handled: it is recorded, logged, and acknowledged."""


class StaleRecord(Temporary):
    """A record was written by another process since it was read: retry with the current record."""
