from collections.abc import Mapping

import pytest

from infra.local.cluster.kueue.flavors import Assignment, Ground, Mode, assign
from infra.local.cluster.kueue.quota import nominal
from infra.local.cluster.objects import Object
from tests.local.kueue.world import LABELS, TPU, cluster_queue, flavor, group, pod_set, stored, workload

OF_TPU = ("tpu", TPU)
OTHER = {"cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice"}
SPOT = {"key": "spot", "value": "yes", "effect": "NoSchedule"}
BEARS = {"key": "spot", "operator": "Exists"}
MISMATCH = "couldn't assign flavors to pod set slice: flavor tpu doesn't match node affinity"
UNTOLERATED = "couldn't assign flavors to pod set slice: untolerated taint {spot yes NoSchedule <nil>} in flavor tpu"
LACKING = (
    "couldn't assign flavors to pod set slice: "
    "insufficient unused quota for google.com/tpu in flavor tpu, 8 more needed"
)
TOO_BIG = (
    "couldn't assign flavors to pod set slice: insufficient quota for google.com/tpu in flavor tpu, previously "
    "considered podsets requests (0) + current podset request (8) > maximum capacity (4)"
)
EXCEEDING = TOO_BIG.replace("slice", "second").replace("requests (0)", "requests (8)").replace("(4)", "(12)")


def assigned(
    made: Object,
    queue: Object,
    used: Mapping[tuple[str, str], int] | None = None,
    *flavors: Object,
    preemptible: bool = False,
) -> Assignment:
    """Return the assignment; `used` in chips."""
    usage = {key: chips * 10**9 for key, chips in (used or {}).items()}
    known = {one["metadata"]["name"]: stored(one) for one in flavors or (flavor(),)}
    ground = Ground(cluster_queue=stored(queue), quota=nominal(queue), flavors=known, usage=usage)
    return assign(made, ground, lambda *_: preemptible)


ONE = workload("one")
FEW = cluster_queue(4)
PAIR = workload("pair", pod_set(), pod_set("second"))
SELECTS_OTHER = workload("other", pod_set(nodeSelector=OTHER))
CPU = workload("cpu", pod_set(containers=[{"name": "main", "resources": {"requests": {"cpu": "1"}}}]))
IN_FLAVOR = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
    {"matchExpressions": [{"key": next(iter(OTHER)), "operator": "NotIn", "values": list(LABELS.values())}]},
]}}}  # fmt: skip

CASES: list[tuple[str, Assignment, tuple[Mode, str, str]]] = [
    ("room", assigned(ONE, cluster_queue(8)), (Mode.FIT, "", "")),
    ("nothing left", assigned(ONE, cluster_queue(8), {OF_TPU: 8}), (Mode.NO_CANDIDATES, "WaitingForQuota", LACKING)),
    (
        "a Workload to preempt",
        assigned(ONE, cluster_queue(8), {OF_TPU: 8}, preemptible=True),
        (Mode.PREEMPT, "WaitingForQuota", LACKING),
    ),
    ("never enough", assigned(ONE, FEW), (Mode.NO_FIT, "ExceedsMaxQuota", TOO_BIG)),
    ("not enough for both", assigned(PAIR, cluster_queue(12)), (Mode.NO_FIT, "ExceedsMaxQuota", EXCEEDING)),
    ("another accelerator", assigned(SELECTS_OTHER, cluster_queue()), (Mode.NO_FIT, "NoMatchingFlavor", MISMATCH)),
    (
        "an affinity that excludes it",
        assigned(workload("x", pod_set(affinity=IN_FLAVOR)), cluster_queue()),
        (Mode.NO_FIT, "NoMatchingFlavor", MISMATCH),
    ),
    (
        "a taint",
        assigned(ONE, cluster_queue(), {}, flavor(nodeTaints=[SPOT])),
        (Mode.NO_FIT, "NoMatchingFlavor", UNTOLERATED),
    ),
    (
        "a taint that the flavor tolerates itself",
        assigned(ONE, cluster_queue(), {}, flavor(nodeTaints=[SPOT], tolerations=[BEARS])),
        (Mode.FIT, "", ""),
    ),
    (
        "a taint that the pods tolerate",
        assigned(workload("x", pod_set(tolerations=[BEARS])), cluster_queue(), {}, flavor(nodeTaints=[SPOT])),
        (Mode.FIT, "", ""),
    ),
    (
        "a resource without quota",
        assigned(CPU, cluster_queue()),
        (
            Mode.NO_FIT,
            "NoMatchingFlavor",
            "couldn't assign flavors to pod set slice: resource cpu unavailable in ClusterQueue",
        ),
    ),
    (
        "a topology request",
        assigned(workload("x", pod_set() | {"topologyRequest": {"required": "rack"}}), cluster_queue()),
        (
            Mode.NO_FIT,
            "NoMatchingFlavor",
            'couldn\'t assign flavors to pod set slice: Flavor "tpu" does not support TopologyAwareScheduling',
        ),
    ),
]


@pytest.mark.parametrize(("why", "found", "expected"), CASES, ids=[case[0] for case in CASES])
def test_a_workload_is_judged_by_quota_labels_and_taints(
    why: str, found: Assignment, expected: tuple[Mode, str, str]
) -> None:
    assert (found.mode, found.reason, found.message) == expected, why


def test_the_first_flavor_that_fits_is_taken() -> None:
    queue = cluster_queue(resourceGroups=[group(8, "tpu", "spot")])
    spot = flavor("spot")
    assert assigned(ONE, queue, {}, flavor(), spot).pod_sets[0].flavors == {TPU: "tpu"}
    assert assigned(ONE, queue, {OF_TPU: 8}, flavor(), spot).pod_sets[0].flavors == {TPU: "spot"}


def test_every_flavor_says_why_it_does_not_do() -> None:
    queue = cluster_queue(resourceGroups=[group(8, "tpu", "v6e")])
    found = assigned(ONE, queue, {OF_TPU: 4}, flavor(), flavor("v6e", nodeLabels=OTHER))
    assert found.message == (
        "couldn't assign flavors to pod set slice: flavor v6e doesn't match node affinity, "
        "insufficient unused quota for google.com/tpu in flavor tpu, 4 more needed"
    )
    assert found.reason == "NoMatchingFlavor"


def test_a_flavor_that_fits_goes_before_one_that_needs_preemption_unless_the_queue_would_rather_preempt() -> None:
    groups = [group(8, "tpu", "spot")]
    flavors = (flavor(), flavor("spot"))
    patient = assigned(ONE, cluster_queue(resourceGroups=groups), {OF_TPU: 8}, *flavors, preemptible=True)
    policy = {"whenCanPreempt": "MayStopSearch"}
    queue = cluster_queue(resourceGroups=groups, flavorFungibility=policy)
    ruthless = assigned(ONE, queue, {OF_TPU: 8}, *flavors, preemptible=True)
    assert (patient.mode, patient.pod_sets[0].flavors) == (Mode.FIT, {TPU: "spot"})
    assert (ruthless.mode, ruthless.pod_sets[0].flavors) == (Mode.PREEMPT, {TPU: "tpu"})


def test_an_assignment_says_what_the_pods_use_together() -> None:
    groups = [group(16), group(2, "cpus", resource="pods")]
    found = assigned(PAIR, cluster_queue(resourceGroups=groups), {}, flavor(), flavor("cpus"))
    assert found.mode is Mode.NO_FIT
    found = assigned(ONE, cluster_queue(resourceGroups=groups), {}, flavor(), flavor("cpus"))
    assert found.pod_sets[0].status() == {
        "name": "slice",
        "count": 2,
        "flavors": {TPU: "tpu", "pods": "cpus"},
        "resourceUsage": {TPU: "8", "pods": "2"},
    }
