import pytest

from infra.local.demo.report import (
    FAILED,
    HAPPENED,
    latencies,
    latency_lines,
    leftover_lines,
    outcome,
    seen_of,
    timelines,
)
from infra.local.demo.steps import Progress, done, failed
from tests.builders import NOW, with_fields
from tests.local.demo.moments import (
    a_group,
    a_jobset,
    a_progress,
    a_slice,
    a_view,
    after,
    created,
    slices_are_seen,
    told,
)
from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.records.transitions import HISTORY

HAPPENING = a_progress(slices_are_seen(1))
STEP = done(HAPPENING, "1 slices", now=1)
NOTHING = {"node pools or instance groups": (), "dead letters": ()}
SOMETHING = {"node pools or instance groups": ("tpu-llama-1",), "dead letters": ()}


def test_a_timeline_has_a_line_for_each_transition_since_the_slice_was_heard_of() -> None:
    head, *lines = timelines(a_view(a_slice("llama", Phase.PROVISIONING, Phase.READY)))
    assert head.endswith("of llama-slice-0")
    assert [line.split()[:4] for line in lines] == [
        ["1.0", "s", "PROVISIONING", "Creating"],
        ["2.0", "s", "READY", "Ready"],
    ]


def test_a_timeline_says_what_the_record_does_not_keep() -> None:
    long = a_slice("llama", *[Phase.PROVISIONING, Phase.READY] * HISTORY)
    assert "20 earlier transitions were not kept" in "\n".join(timelines(a_view(long)))


def test_the_latency_is_from_the_unschedulable_leader_to_the_first_creation_that_gke_took() -> None:
    record = a_slice("llama", Phase.READY)
    calls = (created(record, seconds=0.5, code="UNAVAILABLE"), created(record, seconds=1.5), created(record, 2, 9))
    noticed = {("llama", "slice", 0): NOW + after(0.25)}
    assert latencies(a_view(record, calls=calls), noticed) == {record.name: pytest.approx(1.25)}


def test_a_slice_that_was_never_created_has_no_latency() -> None:
    refused = a_slice("llama", Phase.REFUSED)
    assert latencies(a_view(refused), {("llama", "slice", 0): NOW}) == {}


def test_latencies_are_summed_up_and_what_they_are_is_said() -> None:
    said = "\n".join(latency_lines({"a": 1.0, "b": 2.0, "c": 4.0}))
    assert said.startswith("p50 2.00 s, max 4.00 s, over 3 slices.")
    assert "simulated" in said


def test_nothing_measured_is_said() -> None:
    assert list(latency_lines({})) == ["No node pool creation was measured."]


def test_what_is_left_is_named() -> None:
    assert list(leftover_lines(SOMETHING)) == ["node pools or instance groups: tpu-llama-1", "dead letters: none"]


def test_all_steps_and_nothing_left_is_success() -> None:
    assert outcome([STEP, STEP], NOTHING) == (HAPPENED, "All 2 steps completed, and nothing is left.")


@pytest.mark.parametrize("step", [HAPPENING, failed(HAPPENING, "too late")])
def test_a_step_that_did_not_happen_is_a_failure(step: Progress) -> None:
    assert outcome([STEP, step], NOTHING) == (FAILED, "FAILED: (a) did not complete.")


def test_anything_left_is_a_failure() -> None:
    assert outcome([STEP], SOMETHING) == (FAILED, "FAILED: resources are left: node pools or instance groups.")


def test_of_a_node_group_its_conditions_are_reported() -> None:
    view = a_view(groups=(a_group("llama", Ready="False", InstanceTemplateReady="True"),))
    said = list(seen_of(failed(HAPPENING, "too late"), view))
    assert "  TPUNodeGroup llama: Ready False, InstanceTemplateReady True" in said


def test_a_step_that_did_not_happen_is_reported_with_everything_that_was_seen_of_it() -> None:
    record = a_slice("llama", Phase.WAITING)
    view = a_view(
        with_fields(record, attempt=3),
        a_slice("other", Phase.READY),
        jobsets=(a_jobset("llama", "StartupPolicyCompleted", ready=1),),
        events=(told(record, "out of stock"),),
        pools={f"{record.maker}-3": "ERROR"},
    )
    said = "\n".join(seen_of(failed(HAPPENING, "too late"), view))
    for seen in ("too late", "StartupPolicyCompleted", "WAITING Stockout, attempt 3", "out of stock", "ERROR"):
        assert seen in said
    assert "other" not in said
