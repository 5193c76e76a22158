"""Compares the relay's list of JobSets with the records, part by part, and asks about those that differ."""

from __future__ import annotations

from tpu_slices.domain.model.facts import WorkloadsListed
from tpu_slices.domain.model.questions import AnyQuestion
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.domain.reconciling.inventory import lacking, questions, to_be_repeated
from tpu_slices.ports.deps import IntakeDeps


def workloads_listed(fact: WorkloadsListed, cluster: ClusterId, deps: IntakeDeps) -> None:
    """Ask about JobSets that a part of the list lacks, or has otherwise than the records. Nothing is stored of it.

    A part may come late, twice, before or after the others, or never: it is complete for its range, and the answers
    decide.
    """
    recorded = {uid: it.digest for uid, it in deps.store.live_standings(cluster, fact.after, fact.up_to)}
    records = deps.store.workloads(cluster, lacking(fact, recorded))
    asked: list[AnyQuestion] = [*questions(fact, [stored.value for stored in records.values()])]
    asked += to_be_repeated(fact, recorded)
    if asked:
        deps.publisher.ask(cluster, asked)
