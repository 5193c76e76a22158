"""The metadata servers of all VMs, over HTTP on the loopback interface.

That of a VM is at `URL/PROJECT/ZONE/NAME/computeMetadata/v1/`: what stands before `/computeMetadata` can be its
GCE_METADATA_HOST.
"""

import re

from tpu_standins.cloud.loopback import Answered, Asked, LoopbackServer
from tpu_standins.cloud.timed import Moment
from tpu_standins.compute import guests
from tpu_standins.compute.control_plane import ControlPlane
from tpu_standins.compute.metadata import answers
from tpu_standins.compute.metadata.answers import Question
from tpu_standins.compute.paths import Resource
from tpu_standins.compute.state import State

_PREFIX = re.compile(r"/([^/]+)/([^/]+)/([^/]+)(/computeMetadata/.*)", re.DOTALL)
_MOMENT = 0.5


class MetadataServer(LoopbackServer):
    """Listens from its construction on; `url` has the actual port."""

    def __init__(self, plane: ControlPlane, port: int = 0) -> None:
        self._plane = plane
        self._ending = False
        super().__init__(self._answer, port, "compute-metadata")

    def base(self, vm: Resource) -> str:
        """Return the URL below which a VM finds `/computeMetadata/v1/`."""
        return f"{self.url}/{vm.project}/{vm.location}/{vm.name}"

    def stop(self) -> None:
        """End; whoever waits for a change is told that there was none."""
        self._ending = True
        super().stop()

    def _answer(self, asked: Asked) -> Answered:
        found = _PREFIX.fullmatch(asked.target)
        if found is None:
            return answers.page(404, "The URL of a metadata server is /PROJECT/ZONE/NAME/computeMetadata/v1/.")
        vm, target = Resource(found[1], f"zones/{found[2]}", "instances", found[3]), found[4]
        asked = Asked(asked.method, target, asked.headers, asked.body)
        if no := answers.refused(asked):
            return no
        if write := answers.written(asked):
            return self._write(vm, *write)
        question = answers.question(target) if asked.method == "GET" else None
        if question is None:
            return answers.page(501, f"Not implemented by the local metadata server: {asked.method} {target}")
        return self._read(vm, question)

    def _read(self, vm: Resource, question: Question) -> Answered:
        """Answer at once, or when what is asked has changed: at the latest when its time is over."""
        told = self._told(vm, question)
        seen = question.since or answers.etag(told)
        if not question.waits or answers.etag(told) != seen:
            return told
        _, began = self._plane.look()
        while not self._ending:
            told, now = self._told(vm, question), self._plane.look()[1]
            left = began + question.seconds - now
            if answers.etag(told) != seen or left <= 0:
                break
            self._plane.wait_for_change(min(_MOMENT, left))
        return told

    def _told(self, vm: Resource, question: Question) -> Answered:
        state, now = self._plane.look()
        return answers.answer(state, vm, question, now)

    def _write(self, vm: Resource, path: str, value: str | None) -> Answered:
        where = guests.parse(path)
        state, _ = self._plane.look()
        instance = state.instances.get(vm)
        if instance is None or instance.vm is None or where is None:
            return answers.page(404, "Guest attributes are written as NAMESPACE/KEY, by a VM that exists.")
        if not guests.enabled(instance.vm):
            return answers.page(403, "Guest attributes endpoint access is disabled.")

        def write(state: State, _: Moment) -> State:
            return guests.written(state, vm, where, value)

        self._plane.change(write)
        return answers.done()
