"""The report at the end: a timeline per slice, the latencies, what is left, and the verdict. Pure."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from infra.local.demo.steps import Progress
from infra.local.demo.view import View
from tpu_slices.domain.records.slices import SliceRecord

HAPPENED, FAILED = 0, 1
"""Exit codes."""

LONGEST_MESSAGE = 110

Leader = tuple[str, str, int]
"""JobSet, replicated job and index of the Job whose leader pod it is."""

Leftovers = Mapping[str, Sequence[str]]
"""What still exists, by kind."""


def timelines(view: View) -> Iterator[str]:
    for record in sorted(view.slices, key=lambda record: (record.created_at, record.id)):
        yield f"{record.name}, of {record.job.job_name}"
        yield from timeline(record)


def timeline(record: SliceRecord) -> Iterator[str]:
    """Yield a line for each transition in the record; times are relative to the record's creation."""
    if len(record.transitions) < record.transition_count:
        yield f"           {record.transition_count - len(record.transitions)} earlier transitions were not kept"
    for transition in record.transitions:
        after = (transition.at - record.created_at).total_seconds()
        what = f"{transition.phase.value:<12} {transition.reason.value:<20} {_short(transition.message)}"
        yield f"  {after:5.1f} s  {what}"


def latencies(view: View, noticed: Mapping[Leader, datetime]) -> dict[str, float]:
    """Return, by slice, the seconds from its leader's PodScheduled=False to its first accepted CreateNodePool."""
    found: dict[str, float] = {}
    for record in view.slices:
        job = record.job
        calls = [call.at for call in view.creates_of(job.owner.name) if call.pool.startswith(f"{record.maker}-")]
        began = noticed.get((job.owner.name, job.replicated_job, job.job_index))
        if calls and began is not None:
            found[record.name] = (min(calls) - began).total_seconds()
    return found


def latency_lines(found: Mapping[str, float]) -> Iterator[str]:
    """Yield the percentiles, what was measured, and the note that GKE and the cluster are simulated."""
    if not found:
        yield "No node pool creation was measured."
        return
    seconds = list(found.values())
    yield f"p50 {statistics.median(seconds):.2f} s, max {max(seconds):.2f} s, over {len(seconds)} slices."
    yield "Measured from the moment a watch of the Kubernetes API shows a leader pod with PodScheduled=False to the"
    yield "arrival of the slice's first CreateNodePool at the simulated GKE. In between: relay, Pub/Sub emulator,"
    yield "receive, Firestore emulator, reconcile; for the first slices also the loading of the client libraries."
    yield "GKE and its hosts are simulated: their provisioning times say nothing about the real ones."


def leftover_lines(leftovers: Leftovers) -> Iterator[str]:
    for kind, names in leftovers.items():
        yield f"{kind}: {', '.join(names) if names else 'none'}"


def outcome(steps: Sequence[Progress], leftovers: Leftovers) -> tuple[int, str]:
    """Return the exit code and a message that explains it."""
    missing = [f"({each.step.letter})" for each in steps if not each.happened]
    left = [kind for kind, names in leftovers.items() if names]
    if missing:
        return FAILED, f"FAILED: {', '.join(missing)} did not complete."
    if left:
        return FAILED, f"FAILED: resources are left: {', '.join(left)}."
    return HAPPENED, f"All {len(steps)} steps completed, and nothing is left."


def seen_of(progress: Progress, view: View) -> Iterator[str]:
    """Yield what was observed of a step that did not complete."""
    name = progress.step.workload
    jobset, group = view.jobset(name), view.group(name)
    yield f"({progress.step.letter}) {progress.step.title}: {progress.failure or 'not finished'}"
    if group is not None:
        yield f"  TPUNodeGroup {name}: {', '.join(f'{kind} {status}' for kind, status in group.conditions.items())}"
    else:
        line = _jobset_line(jobset.conditions, jobset.ready, jobset.restarts) if jobset else "absent"
        yield f"  JobSet {name}: {line}"
    for record in view.slices_of(name):
        due = record.next_reconcile_at
        yield f"  {record.name}: {record.phase} {record.reason}, attempt {record.attempt}, due {due}"
        yield from timeline(record)
    for event in view.events_of(name):
        yield f"  Event on {event.about}: {event.type} {event.reason}: {event.message}"
    for pool, state in view.pools_of(name).items():
        yield f"  node pool {pool}: {state}"


def _jobset_line(conditions: frozenset[str], ready: int, restarts: int) -> str:
    return f"conditions {', '.join(sorted(conditions)) or 'none'}; {ready} Jobs ready; {restarts} restarts"


def _short(message: str) -> str:
    return message if len(message) <= LONGEST_MESSAGE else f"{message[: LONGEST_MESSAGE - 1]}…"
