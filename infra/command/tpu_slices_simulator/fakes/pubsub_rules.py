"""What Pub/Sub accepts of a message (its guide "Quotas and limits"; the emulator refuses less)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from tpu_slices.ports.errors import Permanent
from tpu_slices.wire.messages import Message

MESSAGE_BYTES = 10_000_000
ATTRIBUTES, KEY_BYTES, VALUE_BYTES = 100, 256, 1_024

V = TypeVar("V")


def check(encode: Callable[[V], Message], values: Iterable[V]) -> None:
    """Raise Permanent if a value cannot be encoded, or Pub/Sub would refuse its message."""
    for value in values:
        try:
            message = encode(value)
        except ValueError as error:
            raise Permanent(str(error)) from error
        if (why := _refusal(message)) is not None:
            raise Permanent(f"Pub/Sub refuses a message: {why}")


def _refusal(message: Message) -> str | None:
    sizes = [(len(key.encode()), len(value.encode())) for key, value in message.attributes.items()]
    if not message.data:
        return "functions-framework refuses one without data"
    if len(message.data) + sum(map(sum, sizes)) > MESSAGE_BYTES:
        return "it is too large"
    if len(sizes) > ATTRIBUTES or any(not 0 < key <= KEY_BYTES or value > VALUE_BYTES for key, value in sizes):
        return "too many attributes, or too long ones"
    return "a reserved attribute" if any(key.startswith("goog") for key in message.attributes) else None
