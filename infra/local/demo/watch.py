"""Reads what a user could read: records in Firestore, the Kubernetes API, and the pools and calls of the vendor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from google.cloud import firestore

from infra.local.addresses import Addresses
from infra.local.borrowed import DEMO_NAMESPACE
from infra.local.demo.report import Leader
from infra.local.demo.vendors import Vendor, vendor
from infra.local.demo.view import Event, JobSet, NodeGroup, Ran, View
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.wire.documents import COLLECTIONS, decode
from tpu_standins.clients.api import Api
from tpu_standins.clients.kinds import KINDS, Kind
from tpu_standins.clients.labels import HOSTS
from tpu_standins.clients.objects import Object
from tpu_standins.clients.watch import Watch
from tpu_standins.patience import PATIENCE_SECONDS

COMPONENT = "tpu-slice-provisioner"
LEADERS = "batch.kubernetes.io/job-completion-index=0"

_JOBSET = "jobset.sigs.k8s.io/"

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Eyes:
    """Clients of everything that is read. A failed read raises the client's own error."""

    addresses: Addresses
    records: firestore.Client
    vendor: Vendor
    api: Api
    witness: Witness

    def look(self) -> View:
        return View(
            slices=tuple(decode(SliceRecord, document) for document in self.documents(COLLECTIONS[SliceRecord])),
            jobsets=tuple(jobset(item) for item in self.of_demo("jobsets")),
            ran=self.witness.ran,
            groups=tuple(node_group(item) for item in self.of_demo("tpunodegroups")) if self.addresses.compute else (),
            events=tuple(event(item) for item in self.of_demo("events") if _is_ours(item)),
            pools=self.vendor.pools(),
            calls=self.vendor.calls(),
        )

    def documents(self, collection: str) -> Iterator[dict[str, Any]]:
        found = self.records.collection(collection).stream(timeout=PATIENCE_SECONDS)
        return (document for each in found if (document := each.to_dict()) is not None)

    def of_demo(self, plural: str) -> list[Object]:
        """Return the objects of a kind in the demo's namespace: the cluster may have others."""
        return list(self.api.list(plural, DEMO_NAMESPACE)["items"])

    def hosts(self) -> list[Object]:
        """Return the Nodes of local hosts."""
        return list(self.api.list("nodes", labelSelector=HOSTS)["items"])


@contextmanager
def opened(addresses: Addresses, clock: Callable[[], datetime]) -> Iterator[Eyes]:
    """Open the clients, and watch from now on. The Firestore client finds the emulator through the environment."""
    with (
        vendor(addresses) as seen,
        closing(firestore.Client(project=addresses.project)) as records,
        closing(Api.of(addresses.kubeconfig)) as api,
        witnessed(api, clock) as witness,
    ):
        yield Eyes(addresses, records, seen, api, witness)


def jobset(item: Json) -> JobSet:
    """Parse a jobset.x-k8s.io/v1alpha2 JobSet."""
    status = item.get("status") or {}
    return JobSet(
        name=item["metadata"]["name"],
        conditions=frozenset(each["type"] for each in status.get("conditions") or () if each["status"] == "True"),
        ready=sum(each["ready"] for each in status.get("replicatedJobsStatus") or ()),
        restarts=status.get("restarts", 0),
    )


def node_group(item: Json) -> NodeGroup:
    """Parse a tpu.google.com/v1alpha1 TPUNodeGroup."""
    conditions = (item.get("status") or {}).get("conditions") or ()
    return NodeGroup(name=item["metadata"]["name"], conditions={each["type"]: each["status"] for each in conditions})


def event(item: Json) -> Event:
    """Parse a v1 Event."""
    about = item["involvedObject"]
    return Event(
        about=f"{about['kind']}/{about['name']}",
        type=item["type"],
        reason=item["reason"],
        message=item["message"],
    )


def _is_ours(item: Json) -> bool:
    return bool((item.get("source") or {}).get("component") == COMPONENT)


def ran(pod: Json) -> Ran | None:
    """Parse a v1 Pod; return None unless it is a leader pod of a JobSet that runs or has ended."""
    labels = pod["metadata"].get("labels") or {}
    if f"{_JOBSET}jobset-name" not in labels or (pod.get("status") or {}).get("phase", "Pending") == "Pending":
        return None
    return Ran(
        jobset=labels[f"{_JOBSET}jobset-name"],
        job_index=int(labels[f"{_JOBSET}job-index"]),
        restart=int(labels[f"{_JOBSET}restart-attempt"]),
    )


def unschedulable(pod: Json) -> Leader | None:
    """Parse a v1 Pod; return None unless it is an unschedulable leader pod of a JobSet."""
    labels = pod["metadata"].get("labels") or {}
    conditions = (pod.get("status") or {}).get("conditions") or ()
    scheduled: Json = next((each for each in conditions if each["type"] == "PodScheduled"), {})
    if scheduled.get("reason") != "Unschedulable" or f"{_JOBSET}jobset-name" not in labels:
        return None
    replicated_job, index = labels[f"{_JOBSET}replicatedjob-name"], int(labels[f"{_JOBSET}job-index"])
    return labels[f"{_JOBSET}jobset-name"], replicated_job, index


class Witness:
    """Remembers what passes, as a watch of the leaders' pods shows each change of them. Implements `watch.Sink`.

    `noticed`: when each leader was first seen to be unschedulable. `ran`: which Jobs have run.
    """

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self.noticed: dict[Leader, datetime] = {}
        self.ran: frozenset[Ran] = frozenset()

    def listed(self, kind: Kind, items: list[Object], version: int) -> None:  # noqa: ARG002 - as the protocol has it
        for each in items:
            self._take(each)

    def saw(self, kind: Kind, change: str, obj: Object) -> None:  # noqa: ARG002 - as the protocol has it
        if change in {"ADDED", "MODIFIED"}:
            self._take(obj)

    def failed(self, kind: Kind, error: Exception) -> None:
        """Do nothing: the watch tries again, and the API server keeps the pods meanwhile."""

    def _take(self, pod: Object) -> None:
        if pod["metadata"].get("namespace") != DEMO_NAMESPACE:
            return
        if leader := unschedulable(pod):
            self.noticed.setdefault(leader, self._clock())
        if job := ran(pod):
            self.ran |= {job}


@contextmanager
def witnessed(api: Api, clock: Callable[[], datetime]) -> Iterator[Witness]:
    """Watch the leaders' pods of the demo until the block is left."""
    witness = Witness(clock)
    watch = Watch(api, KINDS["pods"], witness, {"labelSelector": LEADERS})
    watch.start()
    try:
        yield witness
    finally:
        watch.stop()
