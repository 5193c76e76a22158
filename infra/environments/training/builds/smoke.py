"""The smoke JobSet: the examples' device check, on the smallest static slice that stands."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Json = Mapping[str, Any]
NAME = "smoke-check"
_JOB = "/spec/replicatedJobs/0/template/spec"
_POD = f"{_JOB}/template/spec"
_TWO_DEVICES = {"tpu7x"}
"""JAX sees each chip of these as two devices: https://docs.cloud.google.com/tpu/docs/tpu7x."""


@dataclass(frozen=True, slots=True)
class Smoke:
    patch: list[Json]
    """What makes it of examples/training/device-check.yaml (RFC 6902)."""
    namespace: str
    hosts: int
    """How many of them report; 0: there is no slice for it."""
    report: str
    """What each says."""


def smoke(flavors: Mapping[str, Json], namespace: str, queue: str) -> Smoke:
    """Return the JobSet for one of the flavors of static slices, as the infrastructure's outputs have them.

    Slices of flex-start are none that stand: Google says when they come.
    """
    patch = [
        _change("replace", "/metadata/name", NAME),
        _change("add", "/metadata/namespace", namespace),
        _change("replace", "/metadata/labels/kueue.x-k8s.io~1queue-name", queue),
        {"op": "remove", "path": f"{_JOB}/completionMode"},  # so that it is seen whether JobSet's webhook sets it
    ]
    stand = [each for each in flavors.values() if each["capacity"] != "flex_start" and each["slices"]]
    if not stand:
        return Smoke(patch, namespace, 0, "")
    flavor = min(stand, key=lambda each: (each["hosts"], each["capacity"] == "spot"))
    devices = 2 if flavor["accelerator"] in _TWO_DEVICES else 1
    here = flavor["chips_per_host"] * devices
    report = f"{flavor['hosts'] * here} devices, {here} here"
    return Smoke([*patch, *_of(flavor)], namespace, flavor["hosts"], report)


def _of(flavor: Json) -> list[Json]:
    tolerations = [{"operator": "Equal", **taint} for taint in flavor["node_taints"]]
    return [
        _change("replace", f"{_JOB}/parallelism", flavor["hosts"]),
        _change("replace", f"{_JOB}/completions", flavor["hosts"]),
        _change("replace", f"{_POD}/nodeSelector", flavor["node_labels"]),
        _change("add", f"{_POD}/tolerations", tolerations),
        _change("replace", f"{_POD}/containers/0/resources/limits/google.com~1tpu", flavor["chips_per_host"]),
    ]


def _change(operation: str, path: str, value: Any) -> Json:
    return {"op": operation, "path": path, "value": value}
