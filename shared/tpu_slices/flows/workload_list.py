"""Compares the relay's list of JobSets with the records, part by part, and asks about those that it lacks."""

from __future__ import annotations

from tpu_slices.domain.model.facts import WorkloadsListed
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.domain.reconciling.inventory import lacking, questions
from tpu_slices.ports.deps import IntakeDeps


def workloads_listed(fact: WorkloadsListed, cluster: ClusterId, deps: IntakeDeps) -> None:
    """Ask about JobSets on record that a part of the list lacks. Nothing is stored of it.

    A part may come late, twice, before or after the others, or never: it is complete for its range, and the answers
    decide.
    """
    absent = lacking(fact, deps.store.live_uids(cluster, fact.after, fact.up_to))
    records = deps.store.workloads(cluster, absent)
    asked = questions(fact, [stored.value for stored in records.values()])
    if asked:
        deps.publisher.ask(cluster, asked)
