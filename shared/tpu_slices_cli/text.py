"""Text of tenants, made safe to show."""

from __future__ import annotations

import unicodedata


def plain(text: str) -> str:
    """Return a text in which control characters and those that change the direction are replaced by U+FFFD."""
    return "".join("\ufffd" if unicodedata.category(each)[0] == "C" and each != "\n" else each for each in text)
