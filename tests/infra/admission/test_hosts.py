"""Which hosts a judged pod may be scheduled to, by the labels that the functions give to the hosts of slices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.webhook.pods import Pod
from tests.builders import a_job, a_leader, a_request, a_spec, an_owner, settings
from tests.infra.admission.judges import Judge, by_policy, by_webhook
from tests.infra.admission.pods import JOB_UID, UID, Json, a_pod, group_together, of_group, of_job, of_jobset, together
from tests.infra.admission.settings import OFF, POLICY, SERVE
from tests.infra.admission.test_agreement import pods
from tpu_slices.domain.model.facts import PROVISIONING_REQUESTS
from tpu_slices.domain.model.slices import OwnerKind, SliceSpec, WorkloadJob, WorkloadUid
from tpu_slices.domain.planning.host_labels import GROUP_KEYS
from tpu_slices.domain.planning.pool_labels import (
    ANY_NAMESPACE_LABEL,
    NAMESPACE_LABEL,
    OWNER,
    OWNER_LABEL,
    PARENT_KIND_LABEL,
    PARENT_NAME_LABEL,
    PARENT_NAMESPACE_LABEL,
    labels_of,
    labels_of_pool,
)
from tpu_slices.domain.planning.specs import SliceRequest, spec_for
from tpu_standins.embedded.controllers.scheduler import Board, choose

_PLENTY = {"google.com/tpu": "8", "cpu": "400", "memory": "4000Gi", "ephemeral-storage": "4000Gi", "pods": "9"}
EARLY = {"leaderworkerset.sigs.k8s.io/group-key": None}
STATIC: dict[str, str] = {}
"""No label of a provisioner."""


def hosts_of(job: WorkloadJob, first_job: int | None = None) -> dict[str, str]:
    """Return the labels of the hosts of the slice that is made for a Job, as far as they tell slices apart."""
    request = replace(a_request(), replicated_job=job.replicated_job, first_job=first_job)
    asked = SliceRequest(job=job, request=request, leader=a_leader(), jobset_chips=16)
    spec = spec_for(asked, settings())
    assert isinstance(spec, SliceSpec), spec
    return labels_of(job, 1, spec)


def of_kind(kind: OwnerKind, name: str, **fields: Any) -> WorkloadJob:
    owner = an_owner(name, namespace="default", kind=kind, uid=WorkloadUid(UID))
    return a_job(owner=owner, **{"replicated_job": "", "job_index": 0, **fields})


LLAMA = of_kind(OwnerKind.JOBSET, "llama", replicated_job="workers", job_index=1)
OWN = hosts_of(LLAMA, 3)
ALONE = of_kind(OwnerKind.JOB, "alone")
GROUP = of_kind(OwnerKind.LEADER_WORKER_SET, "vllm", job_index=1)
LEGACY = {
    OWNER_LABEL: OWNER,
    PARENT_KIND_LABEL: "job",
    PARENT_NAMESPACE_LABEL: "default",
    PARENT_NAME_LABEL: "llama-workers-1",
}
ANY = {ANY_NAMESPACE_LABEL: "true"}
NODES: Mapping[str, Mapping[str, str]] = {
    "its slice": OWN,
    "its sibling's": hosts_of(replace(LLAMA, job_index=0), 3),
    "that of its name before": hosts_of(replace(LLAMA, owner=replace(LLAMA.owner, uid=WorkloadUid("before"))), 3),
    "of a copy of its key elsewhere": {**OWN, PARENT_NAMESPACE_LABEL: "kube-public", NAMESPACE_LABEL: "kube-public"},
    "of any namespace, with its key here": {**OWN, **ANY},
    "of any namespace, with its key elsewhere": {**OWN, **ANY, PARENT_NAMESPACE_LABEL: "kube-public"},
    "of any namespace, made anew": labels_of_pool(LLAMA, 1, a_spec(key="tpu-llama-1", crosses=True)),
    "of any namespace, made anew, with its key": labels_of_pool(LLAMA, 1, a_spec(key=f"{UID}.j4", crosses=True)),
    "of any namespace, a group's elsewhere": {**hosts_of(GROUP), **ANY, PARENT_NAMESPACE_LABEL: "kube-public"},
    "the lone Job's": hosts_of(ALONE),
    "the group's": hosts_of(GROUP),
    "its other group's": hosts_of(replace(GROUP, job_index=0)),
    "TPU Provisioner's": LEGACY,
    "TPU Provisioner's for another": {**LEGACY, PARENT_NAME_LABEL: "llama-workers-0"},
    "a TPUNodeGroup's": labels_of(of_kind(OwnerKind.TPU_NODE_GROUP, "nodes"), 1, a_spec(key="")),
    "a static one": STATIC,
}


ITS_OWN = {"its slice", "of any namespace, with its key here"}


def usable(pod: Json) -> set[str]:
    """Return those of the hosts, all of the pod's shape, that it may be scheduled to."""
    judged = POLICY.admitted(pod)
    shape = pod["spec"].get("nodeSelector", {})
    return {name for name, labels in NODES.items() if choose(judged, _board(name, {**shape, **labels})) == name}


def _board(name: str, labels: Mapping[str, str]) -> Board:
    board = Board()
    board.offer({"metadata": {"name": name, "labels": labels}, "spec": {}, "status": {"allocatable": _PLENTY}})
    return board


@pytest.mark.parametrize(
    ("pod", "hosts"),
    [
        pytest.param(of_jobset(), {*ITS_OWN, "TPU Provisioner's"}, id="of a JobSet"),
        pytest.param(
            of_jobset(annotations=together()), {*ITS_OWN, "TPU Provisioner's", "a static one"}, id="kept together"
        ),
        pytest.param(of_job(), {"the lone Job's"}, id="of a Job"),
        pytest.param(of_group(), {"the group's"}, id="of a group"),
        pytest.param(of_group(labels=EARLY), {"the group's", "its other group's"}, id="of a group, not labelled yet"),
        pytest.param(
            of_group(labels=EARLY, namespace="thief"), set(), id="that is never labelled, in another namespace"
        ),
        pytest.param(
            a_pod(annotations={PROVISIONING_REQUESTS[0]: "x"}), {"a static one"}, id="with hosts of GKE's own"
        ),
        pytest.param(a_pod(by=("apps/v1", "ReplicaSet", "web")), {"a static one"}, id="of a ReplicaSet"),
        pytest.param(
            a_pod(tolerations=[{"operator": "Exists"}]), {"a static one"}, id="of no controller, tolerating everything"
        ),
        pytest.param(
            of_jobset(namespace="kube-public"),
            {"of a copy of its key elsewhere", "of any namespace, with its key elsewhere"},
            id="in another namespace",
        ),
    ],
)
def test_a_pod_runs_on_the_hosts_that_are_meant_for_it_and_on_no_others(pod: Json, hosts: set[str]) -> None:
    assert usable(pod) == hosts


@pytest.mark.parametrize("annotations", [{}, group_together()], ids=["alone", "kept together"])
def test_a_leader_that_is_labelled_after_it_was_judged_runs_on_its_own_groups_hosts(
    annotations: dict[str, str],
) -> None:
    labelled = POLICY.admitted(of_group(labels=EARLY, annotations=annotations))
    labelled["metadata"]["labels"] |= of_group()["metadata"]["labels"]
    static = {"a static one"} if annotations else set()
    assert usable(labelled) == {"the group's"} | static
    assert POLICY.admitted(POLICY.admitted(labelled)) == POLICY.admitted(labelled)


OF_OTHERS = [
    {**hosts_of(job, first), **ANY, PARENT_NAMESPACE_LABEL: "research"} for job, first in ((LLAMA, 3), (GROUP, None))
]
"""Of namespace research, with a key that pods of others name, too."""
OF_NOBODY = [
    labels_of_pool(job, 1, a_spec(key=key, crosses=True))
    for job, key in ((LLAMA, f"{UID}.j4"), (GROUP, "key"), (ALONE, JOB_UID), (LLAMA, "tpu-llama-1"))
]
"""As they are made: no relay has said for which namespace they are."""


@given(pods, st.sampled_from([by_policy, by_webhook]), st.sampled_from([OFF, SERVE]))
def test_no_pod_comes_to_hosts_of_another_namespace_or_of_none_whatever_it_says(
    pod: Json, judge: Judge, settings_: Mapping[str, str]
) -> None:
    """Whatever keys, names, affinities and tolerations a tenant writes, of whatever kind it pretends to be."""
    if not Pod.read(pod).asks_for_chips:
        return
    judged, shape = judge(pod, settings_), pod["spec"].get("nodeSelector") or {}
    for labels in (*OF_OTHERS, *OF_NOBODY):
        own = {key: value for key, value in shape.items() if key not in GROUP_KEYS}
        assert choose(judged, _board("host", {**own, **labels})) != "host"
