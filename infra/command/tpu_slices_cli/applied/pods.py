"""What asks for a slice for each of its pods, where the setting `serve` of the cluster names it. Pure.

| an object                                  | pods                                       |
|--------------------------------------------|--------------------------------------------|
| Deployment, ReplicaSet                     | `replicas`; what an autoscaler makes of    |
| StatefulSet                                | that is not known                          |
| Pod that nothing else is served for        | itself                                     |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tpu_slices.domain.model.clusters import PodsOf
from tpu_slices.domain.model.facts import TemplateRequest
from tpu_slices.wire import pods
from tpu_slices.wire.tpu_objects import SERVED_AS
from tpu_slices.wire.workloads import Json
from tpu_slices_cli.applied.creation import count_of
from tpu_slices_cli.applied.world import World, named

_QUARTER = "25%"
"""What a Deployment makes beyond its replicas at a time if it does not say (k8s.io/api apps/v1, maxSurge)."""


@dataclass(frozen=True, slots=True)
class ByThemselves:
    """Pods that get a slice each, if the cluster serves them."""

    made_by: PodsOf
    pod: Json
    """The pod, or the template of all, with its metadata and spec."""
    replicas: int
    """0: there is none."""

    @property
    def request(self) -> TemplateRequest:
        """Return what each requests; raise ValueError for a field."""
        request = pods.request_of_pod(self.pod)
        return replace(request, made_by=self.made_by.value)

    def names(self, name: str) -> Iterator[str]:
        """Yield what the pods are called, or might be, as a Deployment's have random names."""
        return (
            iter([name]) if self.pod.get("kind") == "Pod" else (f"{name}-{number}" for number in range(self.replicas))
        )


def by_themselves(body: Json) -> ByThemselves | None:
    """Return the pods of an object that may get a slice each; None: it has none, or is controlled by what has them."""
    group, _, version = str(body["apiVersion"]).rpartition("/")
    served_as = SERVED_AS.get((group, str(body["kind"])))
    if served_as is None or version != "v1":
        return None
    if body["kind"] == "Pod":
        whose = pods.made_by(body)
        return ByThemselves(whose, body, 1) if whose is not None else None
    spec = body.get("spec") or {}
    template = spec.get("template")
    return ByThemselves(served_as, template, count_of(spec, "replicas", 1)) if template else None


def changes(body: Json, served: ByThemselves, world: World) -> Iterator[str]:
    """Yield what may make more pods than an object says, each of which gets a slice of its own."""
    what = named(body)
    surge = _surge(body, served.replicas)
    if surge:
        yield (
            f"{what}: a rolling update makes {surge} more pod{'s' if surge > 1 else ''} at a time, each with a slice "
            "of its own: with spec.strategy.rollingUpdate.maxSurge 0 the next pod gets the slice of the one before"
        )
    for scaler in world.of_kind("autoscaling/HorizontalPodAutoscaler", world.namespace_of(body)):
        target = scaler["spec"].get("scaleTargetRef") or {}
        if (target.get("kind"), target.get("name")) == (body["kind"], body["metadata"].get("name")):
            most = scaler["spec"].get("maxReplicas")
            yield (
                f"{what}: {named(scaler)} may scale it up to {most}, and this plan is for {served.replicas}: each pod "
                "more is one slice more, within the limits of chips in the cluster's settings"
            )


def _surge(body: Json, replicas: int) -> int:
    """Return how many pods a rolling update of a Deployment makes beyond its replicas, at a time."""
    if body["kind"] != "Deployment" or not replicas:
        return 0
    strategy: Mapping[str, Any] = body["spec"].get("strategy") or {}
    if strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return 0
    most = (strategy.get("rollingUpdate") or {}).get("maxSurge", _QUARTER)
    share = str(most).removesuffix("%")
    if not share.isdecimal():
        return 0
    return -(-replicas * int(share) // 100) if str(most).endswith("%") else int(share)
