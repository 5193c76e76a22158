"""What is said at the end: a timeline per slice, the latencies, what is left, and the verdict. Pure."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from infra.local.demo.steps import Progress
from infra.local.demo.view import View
from tpu_slices.domain.model.records import SliceRecord

HAPPENED, FAILED = 0, 1
"""Exit codes."""

LONGEST_SENTENCE = 110

Leader = tuple[str, str, int]
"""JobSet, replicated job and index of the Job whose leader pod it is."""

Leftovers = Mapping[str, Sequence[str]]
"""By kind, what is still there."""


def timelines(view: View) -> Iterator[str]:
    for record in sorted(view.slices, key=lambda record: (record.created_at, record.id)):
        yield f"{record.id}, of {record.job.job_name}"
        yield from timeline(record)


def timeline(record: SliceRecord) -> Iterator[str]:
    """Give a line for each transition on record; times since the slice was first heard of."""
    if len(record.transitions) < record.turns:
        yield f"           {record.turns - len(record.transitions)} earlier transitions are not kept"
    for turn in record.transitions:
        after = (turn.at - record.created_at).total_seconds()
        yield f"  {after:5.1f} s  {turn.phase.value:<12} {turn.reason.value:<20} {_short(turn.sentence)}"


def latencies(view: View, noticed: Mapping[Leader, datetime]) -> dict[str, float]:
    """Give, by slice, the seconds from its leader's PodScheduled=False to its first CreateNodePool."""
    found: dict[str, float] = {}
    for record in view.slices:
        job = record.job
        calls = [call.at for call in view.creates_of(job.jobset) if call.pool.startswith(f"{record.id}-")]
        began = noticed.get((job.jobset, job.replicated_job, job.index))
        if calls and began is not None:
            found[record.id] = (min(calls) - began).total_seconds()
    return found


def latency_lines(found: Mapping[str, float]) -> Iterator[str]:
    """Say what was measured, and that GKE and the cluster are simulated."""
    if not found:
        yield "No creation was measured."
        return
    seconds = list(found.values())
    yield f"p50 {statistics.median(seconds):.2f} s, max {max(seconds):.2f} s, over {len(seconds)} slices."
    yield "Measured: from the moment a watch of the Kubernetes API shows a leader pod with PodScheduled=False"
    yield "to the arrival of the slice's first CreateNodePool at GKE, both on this machine. In between: relay,"
    yield "Pub/Sub emulator, receive, Firestore emulator, reconcile; for the first slices also the loading of clients."
    yield "GKE and the cluster are simulated: how long they take to make hosts says nothing about the real ones."


def leftover_lines(leftovers: Leftovers) -> Iterator[str]:
    for kind, names in leftovers.items():
        yield f"{kind}: {', '.join(names) if names else 'none'}"


def verdict(steps: Sequence[Progress], leftovers: Leftovers) -> tuple[int, str]:
    """Give the exit code, and a sentence that says why."""
    missing = [f"({each.step.letter})" for each in steps if not each.happened]
    left = [kind for kind, names in leftovers.items() if names]
    if missing:
        return FAILED, f"FAILED: {', '.join(missing)} did not happen."
    if left:
        return FAILED, f"FAILED: something is left: {', '.join(left)}."
    return HAPPENED, f"All {len(steps)} steps happened, and nothing is left."


def seen_of(progress: Progress, view: View) -> Iterator[str]:
    """Say what was seen of a step that did not happen."""
    name = progress.step.jobset
    jobset = view.jobset(name)
    yield f"({progress.step.letter}) {progress.step.title}: {progress.failure or 'was not finished'}"
    yield f"  JobSet {name}: {_jobset_line(jobset.conditions, jobset.ready, jobset.restarts) if jobset else 'absent'}"
    for record in view.slices_of(name):
        yield f"  {record.id}: {record.phase} {record.reason}, attempt {record.attempt}, due {record.due_at}"
        yield from timeline(record)
    for event in view.events_of(name):
        yield f"  Event on {event.about}: {event.type} {event.reason}: {event.message}"
    for pool, state in view.pools_of(name).items():
        yield f"  node pool {pool}: {state}"


def _jobset_line(conditions: frozenset[str], ready: int, restarts: int) -> str:
    return f"conditions {', '.join(sorted(conditions)) or 'none'}; {ready} Jobs ready; {restarts} restarts"


def _short(sentence: str) -> str:
    return sentence if len(sentence) <= LONGEST_SENTENCE else f"{sentence[: LONGEST_SENTENCE - 1]}…"
