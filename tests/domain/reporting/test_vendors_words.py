"""People read the words of what runs their slices: nothing of GKE in a self-managed cluster, nor the reverse."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest

from tests.builders import NOW, a_record, heard, self_managed, settings, some_hosts, unclaimed
from tests.domain.cases import HOUR, LOST, OTHERS, OURS, SILENT, lasting, seen, unneeded
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.observations import (
    Absent,
    Begun,
    Broken,
    Busy,
    Creating,
    Deleting,
    Failure,
    FailureKind,
    Observation,
    Running,
    Unowned,
    Unreadable,
)
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.vendors import COMPUTE_ENGINE, GKE, Vendor
from tpu_slices.domain.reconciling.case import Situation
from tpu_slices.domain.reconciling.decide import decide
from tpu_slices.domain.records.hosts import NO_HOSTS
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.reporting.node_groups import status_of
from tpu_slices.domain.reporting.reason_texts import REASON_TEXTS, reason_text
from tpu_slices.domain.reporting.waits import QueueState, waits_of
from tpu_slices_cli import words

ELSEWHERE = {
    GKE: re.compile(r"Compute Engine|instance.?(group|template)|workload polic", re.IGNORECASE),
    COMPUTE_ENGINE: re.compile(r"\bGKE\b|node.?pool|gcloud container|flex-start", re.IGNORECASE),
}
"""What nobody may read who has slices of this kind; a reason's own name is not meant."""


OBSERVED = [
    Absent(),
    Creating(),
    LOST,
    OURS,
    OTHERS,
    Busy("repair"),
    *(Broken(Failure(kind, "why")) for kind in FailureKind),
    Deleting(),
    Unowned("not ours."),
    Unreadable("503"),
]
REASONS = (Reason.REQUESTED, Reason.CREATING, Reason.READY, Reason.HOSTS_JOINING, Reason.STOCKOUT)
ON_COMPUTE_ENGINE = [Begun("its workload policy"), Running(awaiting="stockout"), Deleting("its instance template")]


def readable(case: Situation) -> Iterator[str]:
    """Yield all that people read of a case: in `slices explain`, records, Events, reports and statuses."""
    decision = decide(case.record, case.seen, case.now, case.settings, case.known)
    vendor = case.settings.vendor
    yield decision.message
    if decision.let_go is not None:
        yield decision.let_go.message
        yield words.paragraph(decision.let_go, case.now, case.settings)
    yield from (transition.message for transition in decision.record.transitions)
    yield from (words.ordered(action, decision.record, vendor) for action in decision.actions)
    yield words.paragraph(decision.record, case.now, case.settings)
    for wait in waits_of([decision.record], QueueState(vendor=vendor), case.now):
        yield f"{wait.message} {wait.remedy}"
    yield from (condition.message for condition in status_of(decision.record, None).conditions)
    assert REASON_TEXTS[decision.reason].only in {None, vendor}, decision.reason


def records(cluster: ClusterSettings) -> Iterator[SliceRecord]:
    """Yield slices in the states that decisions tell apart, with and without hosts, needed or not, let go or not."""
    pinned = cluster.pools if cluster.self_managed else None
    for reason, hosts in product(REASONS, (NO_HOSTS, some_hosts(usable=1), some_hosts())):
        record = lasting(reason, HOUR, hosts=hosts, pinned_settings=pinned, demand_confirmed_at=NOW)
        yield from (record, replace(record, let_go="nobody used it"), unneeded(record), unclaimed(record))


def cases(observed: Observation, cluster: ClusterSettings) -> Iterator[Situation]:
    """Yield the cases in which the slice's pool is observed as this."""
    slots = {number: number for number in range(4)}
    for record, known in product(records(cluster), (heard(), heard(slots=slots), SILENT)):
        yield Situation(record, seen(observed), NOW, cluster, known)


@pytest.mark.slow
@pytest.mark.parametrize("observed", [*OBSERVED, *ON_COMPUTE_ENGINE], ids=repr)
def test_in_a_self_managed_cluster_nobody_reads_of_gke(observed: Observation) -> None:
    for case in cases(observed, self_managed()):
        for text in readable(case):
            assert not ELSEWHERE[COMPUTE_ENGINE].search(text), text


@pytest.mark.slow
@pytest.mark.parametrize("observed", OBSERVED, ids=repr)
def test_on_gke_nobody_reads_of_what_slices_are_on_compute_engine(observed: Observation) -> None:
    for case in cases(observed, settings()):
        for text in readable(case):
            assert not ELSEWHERE[GKE].search(text), text


@pytest.mark.parametrize("vendor", [GKE, COMPUTE_ENGINE], ids=str)
@pytest.mark.parametrize("reason", Reason)
def test_every_reason_that_there_is_is_told_in_its_words(reason: Reason, vendor: Vendor) -> None:
    if REASON_TEXTS[reason].only in {None, vendor}:
        text = reason_text(a_record(since=NOW), reason, vendor)
        assert not ELSEWHERE[vendor].search(f"{text.message} {text.remedy}")
