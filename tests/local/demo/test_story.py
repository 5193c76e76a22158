"""Every condition of the demo must be able to be false: a demo that cannot fail proves nothing."""

from collections.abc import Callable

import pytest
import yaml

from infra.local.demo.steps import Apply, Delete, Step, Until
from infra.local.demo.story import story, story_on_compute
from infra.local.demo.view import Ran, View
from tests.builders import NOW
from tests.local.demo.moments import a_group, a_jobset, a_slice, a_view, created, told
from tpu_slices.domain.model.reasons import Phase, Reason

STEPS = {step.letter: step for step in story()} | {f"compute-{step.letter}": step for step in story_on_compute()}
P, READY, WAITING, RELEASING, GONE = Phase.PROVISIONING, Phase.READY, Phase.WAITING, Phase.RELEASING, Phase.GONE


def condition(letter: str, what: str) -> Callable[[View], bool]:
    (found,) = (each for each in STEPS[letter].moves if isinstance(each, Until) and what in each.what)
    return found.seen


def two(*phases: Phase) -> View:
    slices = (a_slice("two-slices", *phases), a_slice("two-slices", *phases, index=1))
    return a_view(*slices, calls=tuple(map(created, slices)))


def restarted(*phases: Phase, creates: int = 1) -> View:
    record = a_slice("restart", *phases)
    return a_view(record, calls=tuple(created(record, attempt) for attempt in range(1, creates + 1)))


def refused(message: str, type_: str = "Warning") -> View:
    record = a_slice("impossible", Phase.REFUSED)
    return a_view(record, events=(told(record, message, type_),))


def declared(**conditions: str) -> View:
    return a_view(groups=(a_group("declared", **conditions),))


SECOND_TRY = a_slice("second-try", P, WAITING, P, READY)
REASON = "cloud.google.com/gke-tpu-topology: tpu-v5p-slice has no 3x5x7: use 2x4x4"
AWAITED = a_slice("awaited", P).transitioned(NOW, Reason.AWAITING_CAPACITY, "no capacity")
READY_NOW = AWAITED.transitioned(NOW, Reason.READY, "ready")
NO_POOL_YET = a_slice("change-of-mind", P)
SERVED = a_slice("second-try", P, WAITING, P, READY, RELEASING)
AT_ONCE = a_slice("second-try", P, READY, WAITING)
FIRST, SECOND, AGAIN = Ran("two-slices", 0), Ran("two-slices", 1), Ran("restart", 1, restart=1)
RESTARTED = Ran("restart", 0, restart=1)

TABLE: list[tuple[str, str, View, View]] = [
    ("a", "creates two", two(P), a_view(a_slice("two-slices", P))),
    ("a", "both slices are READY", two(P, READY), two(P)),
    ("a", "both slices are READY", two(P, READY, RELEASING), two(P)),
    ("a", "both Jobs run", a_view(ran=frozenset({FIRST, SECOND})), a_view(ran=frozenset({FIRST, AGAIN}))),
    (
        "a",
        "completes",
        a_view(jobsets=(a_jobset("two-slices", "Completed"),)),
        a_view(jobsets=(a_jobset("two-slices"),)),
    ),
    ("a", "GONE", two(READY, RELEASING, GONE), two(READY, RELEASING)),
    (
        "b",
        "is creating",
        a_view(NO_POOL_YET, pools={f"{NO_POOL_YET.maker}-1": "PROVISIONING"}),
        a_view(NO_POOL_YET, pools={f"{NO_POOL_YET.maker}-1": "RUNNING"}),
    ),
    ("b", "to be released", a_view(a_slice("change-of-mind", P, RELEASING)), a_view(NO_POOL_YET)),
    (
        "b",
        "without ever being READY",
        a_view(a_slice("change-of-mind", P, RELEASING, GONE)),
        a_view(a_slice("change-of-mind", P, READY, RELEASING, GONE)),
    ),
    ("b", "GONE", a_view(a_slice("change-of-mind", P, GONE)), a_view()),
    ("c", "Stockout", a_view(SECOND_TRY), a_view(a_slice("second-try", P, READY))),
    (
        "c",
        "second attempt is READY",
        a_view(SECOND_TRY, calls=(created(SECOND_TRY), created(SECOND_TRY, attempt=2))),
        a_view(SECOND_TRY, calls=(created(SECOND_TRY), created(SECOND_TRY, attempt=2, code="RESOURCE_EXHAUSTED"))),
    ),
    (
        "c",
        "second attempt is READY",
        a_view(SERVED, calls=(created(SERVED), created(SERVED, attempt=2))),
        a_view(AT_ONCE, calls=(created(AT_ONCE), created(AT_ONCE, attempt=2))),
    ),
    ("d", "REFUSED", refused(REASON), a_view(a_slice("impossible", P))),
    ("d", "Event names", refused(REASON), refused("no such shape")),
    ("d", "Event names", refused(REASON), refused(REASON, type_="Normal")),
    ("d", "no node pool was created", refused(REASON), a_view(r := a_slice("impossible", P), calls=(created(r),))),
    ("e", "restarts", a_view(jobsets=(a_jobset("restart", restarts=1),)), a_view(jobsets=(a_jobset("restart"),))),
    ("e", "runs again", a_view(ran=frozenset({RESTARTED})), a_view(ran=frozenset({Ran("restart", 0)}))),
    ("e", "READY throughout", restarted(P, READY), restarted(P, READY, P, READY)),
    ("e", "READY throughout", restarted(P, READY, RELEASING, GONE), restarted(P, READY, P, READY, RELEASING, GONE)),
    ("e", "READY throughout", restarted(P, READY), restarted(P, READY, creates=2)),
    ("compute-b", "AwaitingCapacity", a_view(AWAITED), a_view(a_slice("awaited", P, WAITING))),
    (
        "compute-b",
        "same attempt is READY",
        a_view(READY_NOW, calls=(created(READY_NOW),)),
        a_view(READY_NOW, calls=(created(READY_NOW), created(READY_NOW, attempt=2))),
    ),
    ("compute-c", "is Provisioning", declared(Ready="False"), declared()),
    ("compute-c", "is Provisioning", declared(Ready="False", InstanceTemplateReady="True"), declared(Ready="True")),
    (
        "compute-c",
        "each of its conditions",
        declared(Ready="True"),
        declared(Ready="True", InstanceTemplateReady="False"),
    ),
    ("compute-c", "each of its", declared(Ready="True"), declared()),
    ("compute-c", "its object has gone", a_view(), declared(Ready="False")),
]


@pytest.mark.parametrize(("letter", "what", "yes", "no"), TABLE)
def test_a_condition_is_seen_or_not_seen(letter: str, what: str, yes: View, no: View) -> None:
    seen = condition(letter, what)
    assert (seen(yes), seen(no)) == (True, False)


def test_a_slice_is_not_gone_while_a_pool_of_any_attempt_is_there() -> None:
    record = a_slice("restart", READY, GONE)
    assert not condition("e", "GONE")(a_view(record, pools={f"{record.maker}-2": "STOPPING"}))


def test_the_slices_of_another_jobset_do_not_count() -> None:
    assert not condition("e", "GONE")(a_view(a_slice("two-slices", READY, GONE)))


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_what_is_applied_is_deleted_and_bears_the_name_that_is_looked_for(step: Step) -> None:
    applied = [move.manifest for move in step.moves if isinstance(move, Apply)]
    deleted = [move.manifest for move in step.moves if isinstance(move, Delete)]
    assert applied == deleted
    (manifest,) = applied
    document = yaml.safe_load(manifest.read_text())
    kind = "TPUNodeGroup" if step.workload == "declared" else "JobSet"
    assert (document["kind"], document["metadata"]["name"]) == (kind, step.workload)
