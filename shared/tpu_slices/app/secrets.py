"""Takes bootstrap tokens out of texts that are kept or logged."""

from __future__ import annotations

import base64
import binascii
import re

REDACTED = "[token]"
_TOKEN = re.compile(r"(?<![a-z0-9])[a-z0-9]{6}\.[a-z0-9]{16}(?![a-z0-9])")
_PERHAPS = re.compile(r"[a-z0-9]{6}\.[a-z0-9]{16}")
_ENCODED = re.compile(r"[A-Za-z0-9+/_-]{32,}={0,2}")


def redacted(text: str) -> str:
    """Return a text without bootstrap tokens, be they readable or within base64, as in an event that was not opened.

    Of a text that speaks of a token, what only might be one is taken out too.
    """
    return _ENCODED.sub(lambda run: REDACTED if _holds_one(run[0]) else run[0], _without(text))


def _without(text: str) -> str:
    return (_PERHAPS if "token" in text.lower() else _TOKEN).sub(REDACTED, text)


def _holds_one(encoded: str) -> bool:
    standard = encoded.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        decoded = base64.b64decode(standard + "=" * (-len(standard) % 4)).decode(errors="replace")
    except (binascii.Error, ValueError):
        return False
    return _without(decoded) != decoded
