"""The nodes that Jobs may be scheduled to when the admission policy has changed them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.builders import a_job as a_job_with_a_slice
from tests.builders import a_spec, an_owner
from tests.infra.admission import Json
from tests.infra.admission_cases import POLICY, selector_of
from tpu_slices.domain.model.slices import OwnerKind
from tpu_slices.domain.planning.host_labels import may_be_a_node_label
from tpu_slices.domain.planning.pool_labels import labels_of
from tpu_standins.embedded.controllers.scheduler import Board, choose

_PLENTY = {"google.com/tpu": "8", "cpu": "400", "memory": "4000Gi", "ephemeral-storage": "4000Gi", "pods": "9"}


def slice_of(job: Json) -> dict[str, str]:
    """Return the labels, as far as they tell slices apart, of the hosts that are created for a Job."""
    name, place = job["metadata"]["name"], dict[str, Any](replicated_job="")
    kind = OwnerKind.JOBSET if "labels" in job["metadata"] else OwnerKind.JOB
    if kind is OwnerKind.JOBSET:
        name, replicated, index = name.rsplit("-", 2)
        place = {"replicated_job": replicated, "job_index": int(index)}
    made_for = a_job_with_a_slice(owner=an_owner(name, namespace="default", kind=kind), **place)
    selected = selector_of(POLICY.admitted(job)).items()
    return labels_of(made_for, 2, a_spec(node_labels=tuple(pair for pair in selected if may_be_a_node_label(pair[0]))))


def usable(job: Json, nodes: Mapping[str, Mapping[str, str]]) -> set[str]:
    """Return those of the nodes, all of the Job's shape and by name with their labels, that its pods may run on."""
    template = POLICY.admitted(job)["spec"]["template"]
    pod = {"metadata": {"namespace": "default"}, "spec": template["spec"]}
    shape = {key: value for key, value in selector_of(job).items() if not may_be_a_node_label(key)}
    return {name for name, labels in nodes.items() if choose(pod, _with_node(name, {**shape, **labels})) == name}


def _with_node(name: str, labels: Mapping[str, str]) -> Board:
    board = Board()
    board.offer({"metadata": {"name": name, "labels": labels}, "spec": {}, "status": {"allocatable": _PLENTY}})
    return board
