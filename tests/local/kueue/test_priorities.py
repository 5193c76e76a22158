import pytest

from infra.local.cluster.kueue.priorities import MissingClassError, Priorities
from infra.local.cluster.objects import Object
from tests.local.controllers.cluster import pod_spec, replicated_job
from tests.local.kueue.world import PRIORITY, priority_class, queued

KNOWN = Priorities.known([priority_class("train", 5)], [priority_class("high", 1000), priority_class("low", 10)])
DEFAULTED = Priorities.known([], [priority_class("usual", 50) | {"globalDefault": True}])


def jobset(*classes: str, label: str = "") -> Object:
    """Return a JobSet with a replicatedJob for each class of its pods."""
    named = [{"priorityClassName": name} if name else {} for name in classes or ("",)]
    jobs = [replicated_job(f"job-{i}", pod={"spec": pod_spec() | one}) for i, one in enumerate(named)]
    return queued("train", *jobs, labels={PRIORITY: label} if label else {})


CASES: list[tuple[str, Object, Object]] = [
    ("none", KNOWN.of(jobset()), {"priority": 0}),
    (
        "the label's",
        KNOWN.of(jobset("high", label="train")),
        {
            "priority": 5,
            "priorityClassName": "train",
            "priorityClassSource": "kueue.x-k8s.io/workloadpriorityclass",
        },
    ),
    (
        "the first pods' that have one",
        KNOWN.of(jobset("", "high", "low")),
        {
            "priority": 1000,
            "priorityClassName": "high",
            "priorityClassSource": "scheduling.k8s.io/priorityclass",
        },
    ),
    (
        "the global default",
        DEFAULTED.of(jobset()),
        {
            "priority": 50,
            "priorityClassName": "usual",
            "priorityClassSource": "scheduling.k8s.io/priorityclass",
        },
    ),
]


@pytest.mark.parametrize(("which", "found", "expected"), CASES, ids=[case[0] for case in CASES])
def test_a_workload_has_the_priority_of(which: str, found: Object, expected: Object) -> None:
    assert found == expected, which


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (jobset(label="gone"), 'WorkloadPriorityClass "gone" not found'),
        (jobset("gone"), 'PriorityClass "gone" not found'),
    ],
)
def test_a_class_that_does_not_exist_is_named(wrong: Object, message: str) -> None:
    with pytest.raises(MissingClassError, match=message):
        KNOWN.of(wrong)
