"""The open watches, and what may befall them."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum

SAID_BY_WATCHES = ("close-watches", "silence-watches", "rewind-watches", "say-to-watches")


class Turn(Enum):
    """What happens to a watch instead of the next event."""

    END = "end"
    """The stream ends, as the API server ends it from time to time."""
    REWIND = "rewind"
    """The stream goes on with all objects as they are, each in its version, which is older than what was seen."""
    BREAK = "break"
    """The connection is lost."""


@dataclass(slots=True, eq=False)
class OpenWatch:
    """A watch; `items` are the pieces to send, in whole lines, and what befalls it."""

    resource: str
    silent: bool = False
    items: asyncio.Queue[bytes | Turn] = field(default_factory=asyncio.Queue)

    async def hear(self, pieces: AsyncIterator[bytes]) -> None:
        """Queue what the API server sends, cut at the ends of lines, until it ends the watch or is lost."""
        rest = b""
        try:
            async for piece in pieces:
                whole, end, rest = (rest + piece).rpartition(b"\n")
                if end:
                    self.items.put_nowait(whole + end)
            self.items.put_nowait(rest)
            self.items.put_nowait(Turn.END)
        except OSError:
            self.items.put_nowait(Turn.BREAK)

    async def told(self) -> AsyncIterator[bytes | Turn]:
        """Yield the pieces to send until a turn, which is the last that is yielded."""
        item: bytes | Turn = b""
        while isinstance(item, bytes):
            item = await self.items.get()
            if isinstance(item, Turn) or not self.silent:
                yield item


class Watches:
    """The open watches, by what the buttons do to them. Each button returns how many watches it affects."""

    def __init__(self) -> None:
        self._open: set[OpenWatch] = set()

    @contextmanager
    def opened(self, segments: list[str]) -> Iterator[OpenWatch]:
        """Hold a watch of a path's segments open during the block."""
        one = OpenWatch("/".join(segments))
        self._open.add(one)
        try:
            yield one
        finally:
            self._open.discard(one)

    def count(self) -> int:
        """Return how many are open."""
        return len(self._open)

    def press(self, button: str, resource: str | None, text: str = "") -> int:
        """Do what a button of SAID_BY_WATCHES says, to the watches of one resource or to all."""
        chosen = [one for one in self._open if resource is None or resource in one.resource.split("/")]
        for one in chosen:
            match button:
                case "close-watches":
                    one.items.put_nowait(Turn.END)
                case "rewind-watches":
                    one.items.put_nowait(Turn.REWIND)
                case "say-to-watches":
                    one.items.put_nowait(text.encode())
                case _:
                    one.silent = True
        return len(chosen)

    def restore(self) -> None:
        """End the watches that were silenced, so that their clients open others."""
        for one in self._open:
            if one.silent:
                one.items.put_nowait(Turn.END)
