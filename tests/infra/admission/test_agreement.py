"""The policy and the webhook are one table in two languages: they place every pod alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from hypothesis import given
from hypothesis import strategies as st

from tests.infra.admission.judges import by_policy, by_webhook
from tests.infra.admission.pods import (
    COMPLETION_INDEX,
    JOB_UID,
    UID,
    Json,
    a_container,
    a_pod,
    gates_of,
    requiring,
    term,
    terms_of,
    within,
)
from tests.infra.admission.settings import HINT, HINT_KEY, OFF, OPTED_OUT, SERVE, STRIP
from tpu_slices.domain.model.facts import (
    EXCLUSIVE,
    GROUP_EXCLUSIVE,
    INJECT_SLICE_SELECTOR,
    PROVISIONING_REQUESTS,
    SLICE_TOPOLOGY,
)
from tpu_slices.domain.model.gangs import GANG
from tpu_slices.domain.planning.host_labels import CAPACITY_KEYS, GKE_PROVISIONERS, GROUP_KEYS, NODE_POOL, TOPOLOGY
from tpu_slices.domain.planning.keys import KEY_LABEL
from tpu_slices.domain.planning.pool_labels import OWNER_LABEL, PARENT_NAMESPACE_LABEL
from tpu_slices.wire.leader_worker_sets import LEADER_HAS_CHIPS, WORKER_INDEX
from tpu_slices.wire.workloads import BY_NODE_SELECTOR

Values = Mapping[str, Sequence[str]]
INDICES = ("0", "1", "4", "x", "", "-1", "9" * 9, "9" * 10)
LABELS: Values = MappingProxyType(
    {
        "jobset.sigs.k8s.io/jobset-name": ("llama",),
        "jobset.sigs.k8s.io/jobset-uid": (UID, ""),
        "jobset.sigs.k8s.io/job-index": INDICES,
        "jobset.sigs.k8s.io/job-global-index": INDICES,
        "leaderworkerset.sigs.k8s.io/name": ("vllm", ""),
        "leaderworkerset.sigs.k8s.io/group-key": ("key", ""),
        COMPLETION_INDEX: ("0",),
        OPTED_OUT: ("true", "false"),
        INJECT_SLICE_SELECTOR: ("true",),
        GANG: ("true", "false"),
        WORKER_INDEX: ("0", "1"),
    }
)
ANNOTATIONS: Values = MappingProxyType(
    {
        EXCLUSIVE: (NODE_POOL, "topology.kubernetes.io/zone"),
        GROUP_EXCLUSIVE: (NODE_POOL, "topology.kubernetes.io/zone"),
        "kueue.x-k8s.io/podset-required-topology": (NODE_POOL, "rack"),
        "leaderworkerset.sigs.k8s.io/subgroup-size": ("2",),
        SLICE_TOPOLOGY: ("2x4", "4x4"),
        COMPLETION_INDEX: ("0", "1"),
        LEADER_HAS_CHIPS: ("true", "false"),
        BY_NODE_SELECTOR: ("true",),
        OPTED_OUT: ("true", "false"),
        PROVISIONING_REQUESTS[0]: ("x",),
        INJECT_SLICE_SELECTOR: ("true",),
    }
)
SELECTORS: Values = MappingProxyType(
    {
        TOPOLOGY: ("2x4", "4x4", "2x2x1", "axb", "2x4x", "9999x1", ""),
        NODE_POOL: ("static-1",),
        HINT_KEY: ("cell-a", "cell-b"),
        **dict.fromkeys(CAPACITY_KEYS, ("true",)),
        **dict.fromkeys(GKE_PROVISIONERS, ("x",)),
        **dict.fromkeys(sorted(GROUP_KEYS), ("x",)),
    }
)
EXPRESSIONS = (
    within("team", "vision"),
    within(NODE_POOL, "static-1"),
    within(NODE_POOL, "static-1", "static-2"),
    within(KEY_LABEL, f"{UID}.j4", f"{UID}.r3"),
    within(PARENT_NAMESPACE_LABEL, "default"),
    {"key": OWNER_LABEL, "operator": "DoesNotExist"},
)
FIELDS: Json = {"matchFields": [within("metadata.name", "host-0")]}


def some(values: Values) -> st.SearchStrategy[dict[str, str]]:
    """Return few of the keys, each with one of its values."""
    pairs = st.sampled_from(sorted(values)).flatmap(lambda key: st.tuples(st.just(key), st.sampled_from(values[key])))
    return st.lists(pairs, max_size=6).map(dict)


OF_JOBSETS = {"jobset.sigs.k8s.io/jobset-uid": UID, COMPLETION_INDEX: "0"}
labels = st.builds(
    lambda more, of_jobset: {**(OF_JOBSETS if of_jobset else {}), **more},
    some(LABELS),
    st.booleans(),
)
terms = st.builds(
    lambda expressions, fields: {**term(*expressions), **(FIELDS if fields else {})} if expressions else {},
    st.lists(st.sampled_from(EXPRESSIONS), max_size=3),
    st.booleans(),
)
affinities: st.SearchStrategy[Json | None] = (
    st.none()
    | st.just(requiring())
    | st.just({"nodeAffinity": {}})
    | st.lists(terms, max_size=3).map(lambda some_terms: requiring(*some_terms))
)
controllers = st.sampled_from(
    [
        None,
        ("batch/v1", "Job", "llama-0"),
        ("apps/v1", "ReplicaSet", "web"),
        ("apps/v1", "StatefulSet", "web"),
        ("apps/v1", "DaemonSet", "web"),
        ("ray.io/v1", "RayCluster", "ray"),
    ]
)
containers = st.sampled_from(["0", "4", "8", "16"]).map(lambda chips: a_container(chips=chips))
pods = st.builds(
    lambda container, **fields: a_pod(container, uid=JOB_UID, **fields),
    containers,
    labels=labels,
    annotations=some(ANNOTATIONS),
    by=controllers,
    nodeSelector=st.none() | some(SELECTORS),
    affinity=affinities,
    namespace=st.sampled_from(["default", "team"]),
    schedulingGates=st.none() | st.lists(st.sampled_from([{"name": GANG}, {"name": "other"}]), unique_by=str),
)


@given(pods, st.sampled_from([OFF, STRIP, HINT, {**STRIP, **HINT}, SERVE, {**SERVE, **STRIP, **HINT}]))
def test_the_policy_and_the_webhook_place_every_pod_alike(pod: Json, settings: Mapping[str, str]) -> None:
    one, other = by_policy(pod, settings), by_webhook(pod, settings)
    assert terms_of(one) == terms_of(other)
    assert one["spec"].get("nodeSelector") == other["spec"].get("nodeSelector")
    assert gates_of(one) == gates_of(other)
