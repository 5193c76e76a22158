"""The other objects of the files that are planned: what is applied together exists together. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tpu_slices.domain.model.slices import OwnerKind
from tpu_slices.wire.device_claims import Find
from tpu_slices.wire.tpu_objects import name_of
from tpu_slices.wire.workloads import Json

_Key = tuple[str, str, str, str | None]


@dataclass(frozen=True, slots=True)
class World:
    """Objects by API group, kind, name and namespace; None: their kind has no namespaces."""

    objects: Mapping[_Key, Json]
    namespace: str
    """That of manifests without one."""

    def get(self, kind: str, name: object, namespace: str | None = None) -> Json | None:
        """Return the object of a kind, as `Service` or `scheduling.k8s.io/PodGroup`; None: no file has it."""
        group, _, itself = kind.rpartition("/")
        return self.objects.get((group, itself, str(name), namespace))

    def of_kind(self, kind: str, namespace: str) -> Iterator[Json]:
        """Yield the objects of a kind in a namespace."""
        group, _, itself = kind.rpartition("/")
        return (each for key, each in self.objects.items() if (*key[:2], key[3]) == (group, itself, namespace))

    def claims_of(self, body: Json) -> Find:
        """Return what finds the ResourceClaims, and the templates of them, that the pods of an object name."""
        return lambda kind, name: self.get(kind, name, self.namespace_of(body))

    def namespace_of(self, body: Json) -> str:
        return str(body["metadata"].get("namespace") or self.namespace)


_WITHOUT_NAMESPACE = frozenset({"AdmissionCheck", "ClusterQueue", "ResourceFlavor"})
"""Of the kinds that are asked for."""


def world_of(bodies: Iterable[Json], namespace: str) -> World:
    """Return the world of these objects; `namespace` is that of manifests without one."""
    world = World({}, namespace)
    return World({_key(body, world): body for body in bodies}, namespace)


def _key(body: Json, world: World) -> _Key:
    group, slash, _ = str(body["apiVersion"]).partition("/")
    kind = str(body["kind"])
    namespace = None if kind in _WITHOUT_NAMESPACE else world.namespace_of(body)
    return group if slash else "", kind, str(body["metadata"].get("name")), namespace


def check_form(body: Json) -> None:
    """Raise ValueError for a workload without what says what it is."""
    found = body.get("spec")
    spec = found if isinstance(found, Mapping) else {}
    needed = "replicatedJobs" if body["kind"] == "JobSet" else ""
    if not (spec.get(needed) if needed else spec):
        raise ValueError(f"spec.{needed} is missing" if needed else "spec is missing")


def templates_of(body: Json, kind: OwnerKind) -> Iterator[tuple[str, Any]]:
    """Yield the pod templates of a workload, each with the path of its spec's parent."""
    spec = body["spec"]
    match kind:
        case OwnerKind.JOBSET:
            for index, job in enumerate(spec["replicatedJobs"]):
                yield f"spec.replicatedJobs[{index}].template.spec.template", job["template"]["spec"]["template"]
        case OwnerKind.JOB:
            yield "spec.template", spec["template"]
        case OwnerKind.LEADER_WORKER_SET:
            for field in ("leaderTemplate", "workerTemplate"):
                if template := spec["leaderWorkerTemplate"].get(field):
                    yield f"spec.leaderWorkerTemplate.{field}", template
        case OwnerKind.TPU_NODE_GROUP | OwnerKind.POD | OwnerKind.SPARE:
            return


def named(body: Json) -> str:
    """Return the kind and the name of an object, or one such as the API server would generate."""
    return f"{body['kind']} {name_of(body['metadata'])}"
