"""The API server's part of a mirror, in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from relay.mirror.objects import Json
from tpu_slices.domain.records.mirror import MirrorKind
from tpu_slices.ports.errors import Temporary


@dataclass
class FakeObjects:
    """The mirror's objects; each call raises `error` if it is set."""

    there: dict[tuple[str, str], Json] = field(default_factory=dict)
    confirmed: list[Json] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    namespace_is_gone: bool = False
    error: Exception | None = None
    forbidden: str = ""
    """The name of an object that may not be written."""

    def objects(self, kind: MirrorKind) -> Iterator[Json]:
        self._fail()
        yield from (obj["metadata"] for (of, _), obj in list(self.there.items()) if of == kind)

    def apply(self, kind: MirrorKind, obj: Json) -> bool:
        self._fail()
        if obj["metadata"]["name"] == self.forbidden:
            raise Temporary("the API server refused: 403 Forbidden")
        self.writes.append(obj["metadata"]["name"])
        if not self.namespace_is_gone:
            self.there[kind, obj["metadata"]["name"]] = obj
        return not self.namespace_is_gone

    def confirm(self, obj: Json) -> None:
        self._fail()
        self.confirmed.append(obj)

    def remove(self, kind: MirrorKind, namespace: str, name: str) -> None:
        self._fail()
        self.writes.append(f"-{namespace}/{name}")
        self.there.pop((kind, name), None)

    def _fail(self) -> None:
        if self.error is not None:
            raise self.error
