"""Lists that are long, slow, cut off, or change while they are read."""

import time
from collections import deque
from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from relay import cluster, watch
from relay.fact_queue import FactQueue
from relay.objects import Kind, Seen
from relay.watch import LINE_BYTES, LONGEST_PAGE, PAGE_BYTES, Lines, next_limit, page_of
from tests.builders import CLUSTER
from tests.relay.attack.bed import Bed, names
from tests.relay.attack.scripted import Scripted, nodes
from tests.relay.objects import jobset, pod, replicated_job
from tests.relay.watched import START, read
from tpu_slices.domain.model.facts import SlicesWanted
from tpu_slices.domain.model.slices import SLICES_PER_WORKLOAD
from tpu_slices_simulator.relays import due_facts

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

MANY = 10_000


def page(items: list[Mapping[str, Any]], rest: str) -> str:
    metadata = {"resourceVersion": "7", **({"continue": rest} if rest else {})}
    return orjson.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": items}).decode()


def test_a_slow_list_of_very_many_pods_is_read_completely(bed: Bed) -> None:
    pods = [pod(number) for number in range(MANY)]
    for first in range(0, MANY, LONGEST_PAGE):
        rest = f"after {first}" if first + LONGEST_PAGE < MANY else ""
        text = page([*pods[first : first + LONGEST_PAGE]], rest)
        bed.press("answer", resource="pods", verb="list", code=200, text=text, seconds=0.02, times=1)
    bed.recorder.kind = Kind.LEADERS
    bed.source = next(source for source in cluster.sources(bed.api) if source.kind is Kind.LEADERS)
    with bed.watching() as recorder:
        recorder.until(lambda: bool(recorder.lists))
    assert len(recorder.lists[0]) == MANY
    assert recorder.ticks >= MANY / LONGEST_PAGE


@pytest.mark.parametrize(
    ("replicas", "reported"),
    [
        pytest.param(SLICES_PER_WORKLOAD, MANY, id="the largest JobSet"),
        pytest.param(2, MANY, id="pods that claim to be of a small one"),
        pytest.param(MANY, 0, id="a JobSet larger than is served"),
    ],
)
def test_very_many_leaders_of_one_jobset_do_not_hold_up_the_fact_queue(replicas: int, reported: int) -> None:
    leaders: list[Seen] = [read(pod(number)) for number in range(MANY)]
    few_seconds, _ = spent(replicas, leaders[: MANY // 10])
    seconds, waiting = spent(replicas, leaders)
    assert waiting == reported
    assert seconds < 40 * few_seconds  # to compare each leader with each other takes a hundred times as long


def spent(replicas: int, leaders: list[Seen]) -> tuple[float, int]:
    """Return the processor time until the demand of these leaders is told, and how many are in it."""
    parent = jobset(spec={"replicatedJobs": [replicated_job(replicas=replicas)]})
    lists: dict[Kind, list[Seen]] = {Kind.JOBSETS: [read(parent)], Kind.LEADERS: leaders}
    queue, began = FactQueue(CLUSTER), time.process_time()
    for kind in Kind:
        queue.listed(kind, lists.get(kind, []), "1", START)
    demand = [fact for fact in due_facts(queue, START) if isinstance(fact, SlicesWanted)]
    return time.process_time() - began, sum(len(fact.waiting) for fact in demand)


def test_a_list_whose_continue_token_expired_is_read_in_one_page(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "FIRST_PAGE", 1)
    bed.create(0, 1, 2, 3)
    bed.press("answer", verb="list", continued=True, code=410, message="The provided continue parameter is too old")
    with bed.watching() as recorder:
        recorder.until(lambda: bool(recorder.lists))
        bed.create(4)
        recorder.until(lambda: sorted(recorder.present) == names(0, 1, 2, 3, 4))
    assert (recorder.lists, recorder.failures) == ([names(0, 1, 2, 3)], [])


def test_changes_during_a_list_are_seen_afterwards(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes change between two pages: the pages are of one version, the watch adds the rest."""
    monkeypatch.setattr(watch, "FIRST_PAGE", 2)
    bed.create(0, 1, 2, 3, 4)
    fetch, between = bed.source.fetch, ["once"]

    def fetch_and_change(**arguments: Any) -> watch.Response:
        if "_continue" in arguments and between:
            between.clear()
            bed.delete(0)
            bed.delete(4)
            bed.create(5)
            bed.core.patch_node(names(1)[0], {"metadata": {"labels": {"google.com/tpu-slice-attempt": "2"}}})
        return fetch(**arguments)

    bed.source = watch.Source(Kind.HOSTS, fetch_and_change, bed.source.read, "name", "nodes")
    with bed.watching() as recorder:
        recorder.until(lambda: sorted(recorder.present) == names(1, 2, 3, 5))
        recorder.until(lambda: getattr(recorder.present[names(1)[0]], "pool", ("", 0))[1] == 2)
    assert recorder.lists == [names(0, 1, 2, 3, 4)]


@pytest.mark.parametrize(
    "text",
    ['{"kind":"NodeList","items":[{"meta', "", "null", "[]", '{"items":[]}', '{"metadata":{"resourceVersion":7}}'],
)
def test_a_malformed_list_is_requested_again(text: str) -> None:
    with Scripted(nodes(0), lists=deque([text])).watching() as recorder:
        recorder.until(lambda: recorder.lists == [names(0)])
    assert len(recorder.failures) == 1


def test_a_list_cut_off_on_its_way_is_requested_again(bed: Bed) -> None:
    bed.create(0)
    bed.press("answer", verb="list", code=200, text='{"kind":"NodeList","items":[{"meta', times=1)
    with bed.watching() as recorder:
        recorder.until(lambda: recorder.lists == [names(0)])
    assert len(recorder.failures) == 1


def test_a_list_without_items_is_an_empty_list() -> None:
    assert page_of(b'{"metadata":{"resourceVersion":"7"},"items":null}').items == ()


def test_the_page_size_adapts_to_the_bytes_of_a_page() -> None:
    assert next_limit(50, took=100_000) == 100
    assert next_limit(400, took=100_000) == LONGEST_PAGE
    assert next_limit(100, took=PAGE_BYTES // 2 + 1) == 100
    assert next_limit(50, took=75_000_000) == 5
    assert next_limit(1, took=75_000_000) == 1


def test_an_endless_line_is_an_error() -> None:
    lines = Lines()
    assert lines.of(b"x" * LINE_BYTES) == []
    with pytest.raises(ValueError, match="not an event of a watch"):
        lines.of(b"x")


def test_objects_of_a_megabyte_are_listed_a_few_at_a_time(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "FIRST_PAGE", 4)
    monkeypatch.setattr(watch, "PAGE_BYTES", 1_000_000)
    for number in range(8):
        bed.create(number)
        bed.core.patch_node(names(number)[0], {"metadata": {"annotations": {"note": "x" * 250_000}}})
    limits = []
    fetch = bed.source.fetch

    def fetch_and_record(**arguments: Any) -> watch.Response:
        limits.append(arguments.get("limit"))
        return fetch(**arguments)

    bed.source = watch.Source(Kind.HOSTS, fetch_and_record, bed.source.read, "name", "nodes")
    with bed.watching() as recorder:
        recorder.until(lambda: bool(recorder.lists))
    assert recorder.lists == [names(*range(8))]
    assert limits[:3] == [4, 3, 3]
