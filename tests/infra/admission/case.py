"""A pod of the golden table, and where it may run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from tests.infra.admission.pods import UID, Json, within
from tests.infra.admission.settings import OFF


class Hosts(Enum):
    """Where a pod may run."""

    KEYED = auto()
    """On hosts with one of its keys, in its namespace."""
    NAMED = auto()
    """On hosts without a key that were made for its Job or LeaderWorkerSet, by its name."""
    GROUPS = auto()
    """On hosts of its LeaderWorkerSet's, by its name."""
    STATIC = auto()
    """On hosts that no provisioner made."""


OWN = (Hosts.KEYED, Hosts.NAMED)
STATIC = (Hosts.STATIC,)
KEYS = (f"{UID}.j4", f"{UID}.r3")


@dataclass(frozen=True, kw_only=True)
class Case:
    """A pod, and where it may run."""

    name: str
    pod: Json = field(repr=False)
    hosts: tuple[Hosts, ...]
    """Empty: it is left as it is."""
    keys: tuple[str, ...] = ()
    selector: Mapping[str, str] | None = None
    """Its node selector then; None: as it was."""
    terms: tuple[Json, ...] = ({},)
    """What it requires of its node itself, as far as that is extended."""
    left: tuple[Json, ...] = ()
    """What it requires that is left as it is."""
    settings: Mapping[str, str] = field(default_factory=lambda: OFF)
    gates: tuple[str, ...] = ()
    """The scheduling gates that it has then."""
    refused: str = ""
    """What the API server objects to in it, whatever the policy does."""

    @property
    def required(self) -> list[Json]:
        """What it requires of its node when it is stored, without what is empty."""
        namespace = self.pod["metadata"]["namespace"]
        wanted = [of(hosts, self.keys, namespace, _made_for(self.pod)) for hosts in self.hosts]
        return [*self.left, *(extended(each, more) for more in wanted for each in self.terms)]


def _made_for(pod: Json) -> tuple[str, str]:
    """Return kind and name of what the hosts of a pod are made for."""
    labels = pod["metadata"].get("labels", {})
    if "leaderworkerset.sigs.k8s.io/name" in labels:
        return "leaderworkerset", labels["leaderworkerset.sigs.k8s.io/name"]
    references = pod["metadata"].get("ownerReferences") or [{"name": ""}]
    return "job", references[0]["name"]


def of(hosts: Hosts, keys: tuple[str, ...], namespace: str, made_for: tuple[str, str] = ("", "")) -> list[Json]:
    """Return what a pod requires of such hosts."""
    in_namespace = within("google.com/tpu-provisioner-parent-namespace", namespace)
    match hosts:
        case Hosts.KEYED:
            return [within("google.com/tpu-slice-key", *keys), in_namespace]
        case Hosts.NAMED:
            keyless = {"key": "google.com/tpu-slice-key", "operator": "DoesNotExist"}
            return [*of(Hosts.GROUPS, keys, namespace, made_for), keyless]
        case Hosts.GROUPS:
            kind, name = made_for
            return [
                within("google.com/tpu-provisioner-parent-kind", kind),
                in_namespace,
                within("google.com/tpu-provisioner-parent-name", name),
            ]
        case Hosts.STATIC:
            return [{"key": "google.com/nodepool-manager", "operator": "DoesNotExist"}]


def extended(base: Json, more: list[Json]) -> Json:
    """Return a term with more expressions."""
    return {**base, "matchExpressions": [*base.get("matchExpressions", ()), *more]}


def jobset(name: str, pod: Json, *more: Hosts, **fields: Any) -> Case:
    """Return a pod of the JobSet, which runs on the hosts of its slice, and on more."""
    return Case(name=name, pod=pod, hosts=(*OWN, *more), **{"keys": KEYS, **fields})


def static(name: str, pod: Json, **fields: Any) -> Case:
    return Case(name=name, pod=pod, hosts=STATIC, **fields)


def left_alone(name: str, pod: Json, **fields: Any) -> Case:
    return Case(name=name, pod=pod, hosts=(), **fields)
