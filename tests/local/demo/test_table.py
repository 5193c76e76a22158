from dataclasses import replace
from pathlib import Path

from infra.local.demo.steps import Apply, done, failed
from infra.local.demo.table import changed, news, rows, status
from tests.builders import NOW, some_hosts
from tests.local.demo.moments import a_progress, a_slice, a_view, after, slices_are_seen
from tpu_slices.domain.model.reasons import Phase

APPLY = Apply(Path("llama.yaml"))


def test_a_row_says_whose_slice_it_is_and_how_it_stands() -> None:
    record = a_slice("llama", Phase.PROVISIONING, hosts=some_hosts(usable=3))
    (row,) = rows(a_view(record), NOW + after(7))
    assert row.cells == ("llama", record.name, "PROVISIONING", "Creating", "3/4", "7 s")


def test_a_slice_of_no_known_shape_has_no_number_of_hosts() -> None:
    (row,) = rows(a_view(a_slice("llama", Phase.REFUSED, spec=None)), NOW)
    assert row.hosts == "-"


def test_the_time_stands_still_once_a_slice_is_gone() -> None:
    (row,) = rows(a_view(a_slice("llama", Phase.READY, Phase.GONE)), NOW + after(60))
    assert row.elapsed == "2 s"


def test_rows_stay_in_the_order_in_which_the_slices_came() -> None:
    early = replace(a_slice("zebra"), created_at=NOW - after(1))
    late = a_slice("aardvark")
    assert [row.workload for row in rows(a_view(late, early), NOW)] == ["zebra", "aardvark"]


def test_time_alone_is_no_change() -> None:
    view = a_view(a_slice("llama", Phase.PROVISIONING))
    assert changed(rows(view, NOW), rows(view, NOW + after(5))) == ()


def test_a_new_slice_and_a_new_phase_are_changes() -> None:
    before = rows(a_view(a_slice("llama", Phase.PROVISIONING)), NOW)
    after_ = rows(a_view(a_slice("llama", Phase.PROVISIONING, Phase.READY), a_slice("gemma")), NOW)
    assert {row.workload for row in changed(before, after_)} == {"llama", "gemma"}


def test_a_step_says_what_it_waits_for_and_how_it_ended() -> None:
    waiting = a_progress(slices_are_seen(1))
    assert status(waiting) == "· (a) a slice is made: waiting until 1 slices"
    assert status(done(waiting, "1 slices", 1)) == "✓ (a) a slice is made"
    assert status(failed(waiting, "too late")) == "✗ (a) a slice is made: too late"


def test_news_are_told_once() -> None:
    before = a_progress(APPLY, slices_are_seen(1))
    applied = done(before, "applied", now=12)
    ended = done(applied, "1 slices", now=13)
    assert list(news([before], [applied], started=10)) == ["  2.0 s  (a) applied"]
    assert list(news([applied], [ended], started=10)) == ["  3.0 s  (a) 1 slices", "  3.0 s  (a) ✓ a slice is made"]
    assert not list(news([ended], [ended], started=10))


def test_what_kubectl_prints_is_below_its_line() -> None:
    before = a_progress(APPLY)
    shown = done(before, "kubectl get tng\nNAME\nllama", now=1)
    told, *_ = news([before], [shown], started=0)
    assert told == "  1.0 s  (a) kubectl get tng\n         NAME\n         llama"


def test_a_failure_is_news() -> None:
    before = a_progress(APPLY)
    assert list(news([before], [failed(before, "kubectl: refused")], started=0)) == ["         (a) ✗ kubectl: refused"]
