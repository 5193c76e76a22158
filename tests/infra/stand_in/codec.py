"""What Terraform and its providers say to each other: protocol buffers, and values in them as MessagePack.

Only as much as the stand-in needs: fields that are numbers or have a length, and the types of Terraform's values.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final


class Unknown:
    """A value that is known only after the apply."""


UNKNOWN: Final = Unknown()
_EXTENSIONS = range(0xD4, 0xD9)  # of 1, 2, 4, 8 and 16 bytes
_VARIABLE = {0xC7: (1, "ext"), 0xC8: (2, "ext"), 0xC9: (4, "ext")}
_SIZED = {0xD9: 1, 0xDA: 2, 0xDB: 4, 0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4}
_NUMBERS = {
    0xCA: ">f", 0xCB: ">d",
    0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q",
    0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q",
}  # fmt: skip


def message(*fields: tuple[int, int | str | bytes]) -> bytes:
    """Return a message with these fields, by their numbers."""
    return b"".join(_field(number, value) for number, value in fields)


def _field(number: int, value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(number: int) -> bytes:
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + _varint(rest) if rest else bytes([low])


def fields(data: bytes) -> dict[int, bytes]:
    """Return the fields of a message that have a length, by their numbers; numbers are left out."""
    found: dict[int, bytes] = {}
    at = 0
    while at < len(data):
        key, at = _read_varint(data, at)
        size, at = _read_varint(data, at)
        if key & 7 == 2:
            found[key >> 3] = data[at : at + size]
            at += size
    return found


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at


def unpacked(data: bytes) -> Any:
    """Return the value of MessagePack."""
    return _value(iter(data))


def _value(data: Iterator[int]) -> Any:
    head = next(data)
    if head in {0xC0, 0xC2, 0xC3}:
        return {0xC0: None, 0xC2: False, 0xC3: True}[head]
    if head in _NUMBERS:
        return struct.unpack(_NUMBERS[head], _take(data, struct.calcsize(_NUMBERS[head])))[0]
    if head < 0x80 or head >= 0xE0:
        return head if head < 0x80 else head - 0x100
    if head in _EXTENSIONS:
        _take(data, 1 + 2 ** (head - 0xD4))
        return UNKNOWN
    if head in _VARIABLE:
        _take(data, 1 + _number(data, _VARIABLE[head][0]))
        return UNKNOWN
    size = _number(data, _SIZED[head]) if head in _SIZED else head & (0x1F if head >= 0xA0 else 0x0F)
    if head in {0xDE, 0xDF} or head < 0x90:
        return {_value(data): _value(data) for _ in range(size)}
    if head in {0xDC, 0xDD} or head < 0xA0:
        return [_value(data) for _ in range(size)]
    return _take(data, size).decode()


def _number(data: Iterator[int], size: int) -> int:
    return int.from_bytes(_take(data, size), "big")


def _take(data: Iterator[int], size: int) -> bytes:
    return bytes(next(data) for _ in range(size))


def packed(value: Any) -> bytes:
    """Return a value as MessagePack, each number as a decimal and each size in four bytes."""
    match value:
        case Unknown():
            return b"\xd4\x00\x00"
        case None | bool():
            return {None: b"\xc0", False: b"\xc2", True: b"\xc3"}[value]
        case int() | float():
            return struct.pack(">Bd", 0xCB, value)
        case str():
            return struct.pack(">BI", 0xDB, len(value.encode())) + value.encode()
        case dict():
            return struct.pack(">BI", 0xDF, len(value)) + b"".join(packed(x) for each in value.items() for x in each)
        case list():
            return struct.pack(">BI", 0xDD, len(value)) + b"".join(packed(each) for each in value)
        case _:
            raise TypeError(value)
