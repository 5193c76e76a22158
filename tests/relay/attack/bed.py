"""A watch of nodes against an API server with fault injection."""

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

from kubernetes import client

from relay import cluster
from relay.connection import connect
from relay.objects import Kind, Known
from relay.watch import Patience, Source, Watch
from tests.local.served import Served
from tests.relay.objects import Json, node
from tests.relay.recorder import Recorder
from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.testing.waiting import beside, until


@dataclass
class Bed:
    served: Served
    api: Any
    source: Source[Kind, Known]
    recorder: Recorder = field(default_factory=Recorder)

    @classmethod
    @contextmanager
    def made(cls, served: Served) -> Iterator[Self]:
        with connect({"KUBECONFIG": str(served.kubeconfig)}) as api:
            sources = {source.kind: source for source in cluster.sources(api)}
            bed = cls(served, api, sources[Kind.HOSTS])
            try:
                yield bed
            finally:
                served.proxy.clear()
                bed.core.delete_collection_node()

    @property
    def core(self) -> Any:
        return client.CoreV1Api(self.api)

    def press(self, fault: str, **more: Any) -> int:
        """Press a button of the proxy: one for watches until there is a watch; return how many it affected."""
        if fault == "answer":
            return self.served.press(fault, **more)["watches"]
        return until(lambda: self.served.press(fault, **more)["watches"], f"a watch to {fault}")

    def create(self, *numbers: int, **labels: str) -> None:
        for number in numbers:
            made: Json = node(number, labels=labels)
            del made["metadata"]["resourceVersion"], made["metadata"]["uid"]
            self.core.create_node(client.V1Node.model_validate(made))

    def delete(self, number: int) -> None:
        self.core.delete_node(name(number))

    def raw(self, number: int) -> str:
        """Return a node as the API server writes it."""
        text: bytes = self.core.read_node(name(number), _preload_content=False).data
        return text.decode()

    @contextmanager
    def watching(self, first_pause: float = 0.05) -> Iterator[Recorder]:
        """Run the watch in a thread."""
        one = Watch(
            self.source, self.recorder.put, Patience(PATIENCE_SECONDS, time.monotonic, first_pause), random.Random(3)
        )
        with beside(one.run, one.stop):
            yield self.recorder


def name(number: int) -> str:
    return str(node(number)["metadata"]["name"])


def names(*numbers: int) -> list[str]:
    return sorted(name(number) for number in numbers)
