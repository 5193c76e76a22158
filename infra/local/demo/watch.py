"""Reads what a user could read: records in Firestore, the Kubernetes API, and the pools and calls of the vendor."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from google.cloud import firestore
from urllib3.exceptions import HTTPError

from infra.local.addresses import Addresses
from infra.local.borrowed import DEMO_NAMESPACE
from infra.local.clients.api import Api
from infra.local.clients.errors import ApiError
from infra.local.clients.kinds import KINDS
from infra.local.clients.labels import HOSTS
from infra.local.clients.objects import Object
from infra.local.demo.report import Leader
from infra.local.demo.vendors import Vendor, vendor
from infra.local.demo.view import Event, JobSet, NodeGroup, View
from tpu_slices.domain.model.records import SliceRecord
from tpu_slices.wire.documents import COLLECTIONS, decode

COMPONENT = "tpu-slice-provisioner"
LEADERS = "batch.kubernetes.io/job-completion-index=0"

_JOBSET = "jobset.sigs.k8s.io/"
_TIMEOUT = 5.0
_SILENCE_SECONDS = 600.0
_CHUNK = 65536

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Eyes:
    """Clients of everything that is read. A failed read raises the client's own error."""

    addresses: Addresses
    records: firestore.Client
    vendor: Vendor
    api: Api

    def look(self) -> View:
        return View(
            slices=tuple(decode(SliceRecord, document) for document in self.documents(COLLECTIONS[SliceRecord])),
            jobsets=tuple(jobset(item) for item in self.of_demo("jobsets")),
            groups=tuple(node_group(item) for item in self.of_demo("tpunodegroups")) if self.addresses.compute else (),
            events=tuple(event(item) for item in self.of_demo("events") if _is_ours(item)),
            pools=self.vendor.pools(),
            calls=self.vendor.calls(),
        )

    def documents(self, collection: str) -> Iterator[dict[str, Any]]:
        found = self.records.collection(collection).stream(timeout=_TIMEOUT)
        return (document for each in found if (document := each.to_dict()) is not None)

    def of_demo(self, plural: str) -> list[Object]:
        """Return the objects of a kind in the demo's namespace: the cluster may have others."""
        return list(self.api.list(plural, DEMO_NAMESPACE)["items"])

    def hosts(self) -> list[Object]:
        """Return the Nodes of local hosts."""
        return list(self.api.list("nodes", labelSelector=HOSTS)["items"])


@contextmanager
def opened(addresses: Addresses) -> Iterator[Eyes]:
    """Open the clients. The Firestore client finds the emulator through the environment."""
    with (
        vendor(addresses) as seen,
        closing(firestore.Client(project=addresses.project)) as records,
        closing(Api.of(addresses.kubeconfig)) as api,
    ):
        yield Eyes(addresses, records, seen, api)


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


def unschedulable(pod: Json) -> Leader | None:
    """Parse a v1 Pod; return None unless it is an unschedulable leader pod of a JobSet."""
    labels = pod["metadata"].get("labels") or {}
    conditions = (pod.get("status") or {}).get("conditions") or ()
    scheduled: Json = next((each for each in conditions if each["type"] == "PodScheduled"), {})
    if scheduled.get("reason") != "Unschedulable" or f"{_JOBSET}jobset-name" not in labels:
        return None
    replicated_job, index = labels[f"{_JOBSET}replicatedjob-name"], int(labels[f"{_JOBSET}job-index"])
    return labels[f"{_JOBSET}jobset-name"], replicated_job, index


class Alarm:
    """Records when a watch of the Kubernetes API first showed each leader pod as unschedulable."""

    def __init__(self, addresses: Addresses, clock: Callable[[], datetime]) -> None:
        self._api = Api.of(addresses.kubeconfig)
        self._clock = clock
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="alarm", daemon=True)
        self.noticed: dict[Leader, datetime] = {}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop watching; the thread ends with the connection, that is with the stack."""
        self._over.set()

    def _run(self) -> None:
        """Watch, and reconnect whenever the connection ends; what is recorded by then is kept."""
        path, query = KINDS["pods"].path(DEMO_NAMESPACE), {"watch": "true", "labelSelector": LEADERS}
        while not self._over.wait(0.1):
            with (
                suppress(ApiError, HTTPError, OSError),
                closing(self._api.stream(path, query, _SILENCE_SECONDS)) as stream,
            ):
                begun = b""
                while chunk := stream.read1(_CHUNK):
                    *lines, begun = (begun + chunk).split(b"\n")
                    for line in filter(None, lines):
                        self._take(json.loads(line))

    def _take(self, change: Json) -> None:
        if change["type"] in {"ADDED", "MODIFIED"} and (leader := unschedulable(change["object"])):
            self.noticed.setdefault(leader, self._clock())
