"""What the demo sees of the simulated vendor: the pools that stand, and the calls that it took."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

import grpc
from google.cloud.container_v1 import ClusterManagerClient, NodePool
from google.cloud.container_v1.services.cluster_manager.transports import ClusterManagerGrpcTransport

from infra.local.addresses import Addresses
from infra.local.demo.http import get_json
from infra.local.demo.view import Call
from tpu_standins.patience import PATIENCE_SECONDS

_STATUSES = {200: "OK", 404: "NOT_FOUND", 409: "ALREADY_EXISTS"}

Json = Mapping[str, Any]


class Vendor(Protocol):
    def pools(self) -> Mapping[str, str]:
        """Return the status of each pool, by its name."""

    def calls(self) -> tuple[Call, ...]:
        """Return the calls so far, oldest first."""


@dataclass(frozen=True, slots=True)
class Gke:
    addresses: Addresses
    client: ClusterManagerClient

    def pools(self) -> Mapping[str, str]:
        answer = self.client.list_node_pools(parent=self.addresses.cluster_path, timeout=PATIENCE_SECONDS)
        return {pool.name: NodePool.Status(pool.status).name for pool in answer.node_pools}

    def calls(self) -> tuple[Call, ...]:
        return tuple(call(each) for each in get_json(f"{self.addresses.buttons}/calls")["calls"])


@dataclass(frozen=True, slots=True)
class Compute:
    """Groups with what they need: while a template or a policy stands, the pool is not gone."""

    addresses: Addresses

    def pools(self) -> Mapping[str, str]:
        templates, policies = self._look("templates"), self._look("policies")
        beside = [*templates, *(each["path"] for each in policies)]
        parts = {path.rpartition("/")[2]: "WITHOUT GROUP" for path in beside}
        return {**parts, **{each["name"]: _status(each) for each in self._look("groups")}}

    def calls(self) -> tuple[Call, ...]:
        return tuple(_call(each) for each in self._look("calls"))

    def _look(self, what: str) -> list[Any]:
        found: list[Any] = get_json(f"{self.addresses.buttons}/{what}")[what]
        return found


@contextmanager
def vendor(addresses: Addresses) -> Iterator[Vendor]:
    """Open the vendor of a stack."""
    if addresses.compute:
        yield Compute(addresses)
        return
    with grpc.insecure_channel(addresses.gke) as channel:
        yield Gke(addresses, ClusterManagerClient(transport=ClusterManagerGrpcTransport(channel=channel)))


def call(entry: Json) -> Call:
    """Parse an entry of the local GKE's /calls endpoint."""
    at = datetime.fromtimestamp(entry["at"], UTC)
    return Call(method=entry["method"], pool=entry["pool"], code=entry["code"], at=at)


def _call(entry: Json) -> Call:
    """Parse an entry of the local Compute Engine's /calls endpoint; an insert has its resource's name in its target."""
    return Call(
        method=entry["method"],
        pool=entry["target"].rpartition("/")[2],
        code=_STATUSES.get(entry["code"], str(entry["code"])),
        at=datetime.fromtimestamp(entry["at"], UTC),
    )


def _status(group: Json) -> str:
    return "DELETING" if group["deleting"] else group["problem"] or "STANDS"
