"""The length of texts that quote what tenants wrote."""

from __future__ import annotations

MESSAGE_CHARACTERS = 1_000
"""The most characters of a message that is stored: a record keeps one for each of its last transitions."""


def shortened(text: str, most: int = MESSAGE_CHARACTERS) -> str:
    """Return the text, or its beginning with dots at the end."""
    return text if len(text) <= most else f"{text[: most - 3]}..."
