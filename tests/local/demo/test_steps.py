from pathlib import Path

from infra.local.demo.steps import Apply, Delete, advanced, done, failed
from tests.local.demo.moments import a_progress, a_slice, a_view, slices_are_seen
from tpu_slices.domain.model.reasons import Phase

APPLY, DELETE = Apply(Path("llama.yaml")), Delete(Path("llama.yaml"))
NOTHING = a_view()
ONE = a_view(a_slice("llama", Phase.READY))


def test_what_is_to_be_done_waits_for_nothing_and_is_not_done_by_looking() -> None:
    progress = a_progress(APPLY, slices_are_seen(1))
    assert progress.to_do == APPLY
    assert advanced(progress, ONE, now=1) == progress


def test_everything_that_is_seen_is_passed_at_one_look_up_to_the_next_act() -> None:
    progress = advanced(a_progress(slices_are_seen(0), slices_are_seen(1), DELETE), ONE, now=3)
    assert progress.to_do == DELETE
    assert progress.seen == ((3, "0 slices"), (3, "1 slices"))


def test_a_deadline_counts_from_the_move_before() -> None:
    progress = done(a_progress(APPLY, slices_are_seen(1, within=10)), "applied", now=5)
    assert not advanced(progress, NOTHING, now=15).over
    late = advanced(progress, NOTHING, now=15.1)
    assert late.failure == "not observed within 10 s: 1 slices"


def test_what_is_seen_at_the_last_moment_counts() -> None:
    progress = a_progress(slices_are_seen(1, within=10))
    assert advanced(progress, ONE, now=60).happened


def test_a_step_happened_when_its_last_move_did() -> None:
    progress = done(a_progress(DELETE), "deleted", now=1)
    assert (progress.over, progress.happened, progress.to_do) == (True, True, None)


def test_a_step_that_failed_does_nothing_more() -> None:
    progress = failed(a_progress(APPLY, slices_are_seen(1)), "kubectl: refused")
    assert (progress.over, progress.happened, progress.to_do) == (True, False, None)
    assert advanced(progress, ONE, now=1) == progress


def test_a_step_says_what_it_waits_for() -> None:
    assert a_progress(slices_are_seen(2)).waits_for == "2 slices"
    assert a_progress(APPLY).waits_for == ""
