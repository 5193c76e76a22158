"""Finds out what the API server makes of gangs: it submits a pod and two JobSets each minute, and none is stored.

| what was submitted                          | has then                       | or else          |
|---------------------------------------------|--------------------------------|------------------|
| a pod of a Job with the label of gangs      | the scheduling gate            | NOTHING          |
| a JobSet with the annotation                | the label in its pod template  | PODS             |
| a JobSet of two slices that has none        | the label in its pod template  | ANNOTATED        |
| all of them                                 |                                | MULTISLICE       |

That is the work of the admission policies, or of the webhook (infra/kubernetes/admission.yaml). Where JobSet is not
installed, or somebody else refuses one of these, it is not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Protocol

import structlog

from relay.notices.pinning import NAMESPACE, POD
from relay.notices.trials import Trial
from tpu_slices.domain.model.gangs import GANG, GangOf, Gating
from tpu_slices.ports.errors import Temporary
from tpu_slices.ports.log_events import LogEvent
from tpu_slices.wire.gangs import gates_of

_log = structlog.get_logger()

Json = Mapping[str, Any]
_JOB: Json = {"apiVersion": "batch/v1", "kind": "Job", "name": "gating", "uid": "gating", "controller": True}
_INDEX = "batch.kubernetes.io/job-completion-index"
POD_OF_A_GANG: Json = MappingProxyType(
    {
        **POD,
        "metadata": {
            "name": "gating",
            "namespace": NAMESPACE,
            "labels": {GANG: "true", _INDEX: "0"},
            "annotations": {_INDEX: "0"},
            "ownerReferences": [_JOB],
        },
    }
)


def a_jobset(replicas: int, annotations: Mapping[str, str]) -> Json:
    """Return a JobSet that is not to be stored, whose pods ask for chips."""
    pods = {"spec": {key: each for key, each in POD["spec"].items() if key != "automountServiceAccountToken"}}
    job = {"parallelism": 1, "completions": 1, "completionMode": "Indexed", "template": pods}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "gating", "namespace": NAMESPACE, "annotations": dict(annotations)},
        "spec": {
            "suspend": True,
            "replicatedJobs": [{"name": "slice", "replicas": replicas, "template": {"spec": job}}],
        },
    }


ANNOTATED, MULTISLICE = a_jobset(1, {GANG: GangOf.ALL.value}), a_jobset(2, {})


class Cluster(Protocol):
    """Single calls, as in `relay.cluster.Cluster`."""

    def tried(self, pod: Json) -> Json | str:
        """Return a new pod as it would be created, or in which words its creation fails inside the API server."""

    def tried_jobset(self, jobset: Json) -> Json | str:
        """Return a new JobSet as it would be created, or the same."""


class GatingCheck(Trial[Gating]):
    """What the API server makes of gangs."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        self._cluster = cluster

    def _unknown(self, error: str) -> None:
        _log.warning(LogEvent.GATING_UNKNOWN, error=error)

    def _found(self) -> Gating:
        jobsets = (self._cluster.tried_jobset(each) for each in (ANNOTATED, MULTISLICE))
        return gating_of(*map(_made, (self._cluster.tried(POD_OF_A_GANG), *jobsets)))


def gating_of(pod: Json, annotated: Json, multislice: Json) -> Gating:
    """Return what was made of `POD_OF_A_GANG`, `ANNOTATED` and `MULTISLICE`."""
    if GANG not in gates_of(pod):
        return Gating.NOTHING
    if not _is_labelled(annotated):
        return Gating.PODS
    return Gating.MULTISLICE if _is_labelled(multislice) else Gating.ANNOTATED


def _made(tried: Json | str) -> Json:
    if isinstance(tried, str):
        raise Temporary(tried)
    return tried


def _is_labelled(jobset: Json) -> bool:
    """Return whether the pod template of a JobSet of `a_jobset` has the label of gangs."""
    template = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    labels = (template.get("metadata") or {}).get("labels") or {}
    return labels.get(GANG) == "true"
