"""The Leases of nodes in kube-node-lease, by which Kubernetes' node controller knows that their kubelets live.

A node whose Ready is Unknown is one whose kubelet is silent: its Lease is not renewed.
"""

from datetime import datetime
from zlib import crc32

from tpu_standins.clients.conditions import find, of
from tpu_standins.clients.errors import ApiError
from tpu_standins.clients.objects import Object, Objects, exact_timestamp
from tpu_standins.clients.rounds import Across, soonest
from tpu_standins.kubelet.pace import Pace

NAMESPACE = "kube-node-lease"
_DURATION_SECONDS = 40  # kubelet's nodeLeaseDurationSeconds
_NOT_IMPLEMENTED = 501


class Leases:
    """The controller: when the Lease of each node, by UID, is to be renewed.

    There are none on a server that answers 501: its nodes live without. `across` renews them.
    """

    def __init__(self, across: Across = map) -> None:
        self._renewals: dict[str, datetime] = {}
        self._served = True
        self._across = across

    def reconcile(self, objects: Objects, now: datetime, pace: Pace) -> datetime | None:
        """Renew the Leases for which it is time; return when the next one is."""
        try:
            return self._renew_all(objects, now, pace) if self._served else None
        except ApiError as error:
            if error.code != _NOT_IMPLEMENTED:
                raise
            self._served = False
            return None

    def _renew_all(self, objects: Objects, now: datetime, pace: Pace) -> datetime | None:
        alive = {node["metadata"]["uid"]: node for node in objects.stored("nodes") if lives(node)}
        self._renewals = {uid: time for uid, time in self._renewals.items() if uid in alive}
        due = [node for uid, node in alive.items() if self._renewals.get(uid, now) <= now]
        for uid in self._across(lambda node: _renew(objects, node, now), due):
            self._renewals[uid] = now + pace.lease * (1 if uid in self._renewals else _share(uid))
        return soonest(self._renewals.values())


def lives(node: Object) -> bool:
    ready = find(of(node), "Ready")
    return ready is None or ready["status"] != "Unknown"


def _share(uid: str) -> float:
    """Return the part of the first interval that a node waits, so that renewals are spread: 0.5 to 1."""
    return 0.5 + crc32(uid.encode()) / 2**33


def _renew(objects: Objects, node: Object, now: datetime) -> str:
    """Renew a node's Lease, or create it; return the node's UID."""
    name, uid = node["metadata"]["name"], str(node["metadata"]["uid"])
    spec = {
        "holderIdentity": name,
        "leaseDurationSeconds": _DURATION_SECONDS,
        "renewTime": exact_timestamp(now),
    }
    try:
        objects.patch("leases", NAMESPACE, name, {"spec": spec})
    except ApiError as error:
        if error.code != 404:
            raise
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}
        metadata = {"name": name, "namespace": NAMESPACE, "ownerReferences": [owner]}
        objects.create("leases", {"metadata": metadata, "spec": spec})
    return uid
