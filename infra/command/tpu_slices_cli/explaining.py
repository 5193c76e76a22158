"""`slices explain`: the state of a slice, or of a JobSet and its slices: phase, reason, next decision, history."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Any

import click
import yaml

from tpu_slices.domain.capacity.reservations import described
from tpu_slices.domain.model.observations import Absent
from tpu_slices.domain.model.reasons import IN_LINE, Phase
from tpu_slices.domain.model.slices import ClaimId, ClusterId, SliceId
from tpu_slices.domain.records.hosts import Hosts
from tpu_slices.domain.records.queues import capacity_pool_of
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import Report
from tpu_slices.domain.reporting.reason_texts import PINNED_TEXTS
from tpu_slices.flows.edits import find, find_workload
from tpu_slices.flows.reconcile import Explained, explain
from tpu_slices.flows.report import QueueStates, report_of
from tpu_slices.ports.deps import ReconcileDeps
from tpu_slices.ports.errors import Permanent
from tpu_slices.wire.reports import document
from tpu_slices_cli import words
from tpu_slices_cli.completion import complete_clusters, complete_names
from tpu_slices_cli.explained.alike import several
from tpu_slices_cli.listing import documents, silent_relays
from tpu_slices_cli.screen import console
from tpu_slices_cli.session import Session

_LABEL = 12  # columns


@click.command(name="explain")
@click.argument("name", shell_complete=complete_names)
@click.option(
    "--cluster",
    metavar="ID",
    help="ID of the cluster; optional if only one is configured.",
    shell_complete=complete_clusters,
)
@click.option("--full", is_flag=True, help="Show all of each slice of a workload, also what they have in common.")
@click.option("--output", "-o", type=click.Choice(["text", "json", "yaml"]), default="text", show_default=True)
@click.pass_obj
def explain_command(session: Session, name: str, cluster: str | None, *, full: bool, output: str) -> None:
    """Explain the state of a slice, or why a workload waits. Nothing is changed.

    For a slice, the command shows its record, what is seen of its hosts, the decision that the next reconciliation
    would make, and its history. For a workload with several slices, it shows first what they have in common, then how
    they differ. NAME is a slice, its pool, NAMESPACE/JOB, or the NAMESPACE/NAME of a JobSet, Job or LeaderWorkerSet.
    Put the kind in front if two workloads have one name: Job/NAMESPACE/NAME.

    \b
    slices explain research/llama
    slices explain tpu-llama-workers-0-oahqlz77blgqd -o json
    """  # noqa: D301 - click keeps the line breaks after this mark
    deps, id_ = session.deps, session.cluster(cluster)
    workload = find_workload(id_, name, deps.store) if "/" in name else None
    report = report_of(workload, QueueStates(deps), deps) if workload else None
    names = workload.demand if workload else [record.name for record in _found(id_, name, deps)]
    explained, unreadable = _explained(id_, names, deps)
    earlier = {id_ for each in explained for id_ in each.record.claim.earlier}
    before, not_read = _explained(id_, sorted(earlier - {each.record.id for each in explained}), deps)
    explained, unreadable = [*explained, *before], [*unreadable, *not_read]
    if not (explained or unreadable or report):
        raise Permanent(f'slice "{name}" no longer exists in {id_}')
    if output == "text":
        merged = len({each.record.job for each in explained}) > 1 and not full
        of_slices = [several(explained, deps.clock.now())] if merged else [_text(each, deps) for each in explained]
        head = [_report_text(name, report, deps)] if report else [[name, ""]] if merged else []
        texts = [*head, *of_slices]
        told = [*silent_relays([id_], deps), *unreadable]
        for lines in (*texts, *([told] if told else [])):
            console().print("\n".join(lines), soft_wrap=True)
        return
    shown = {
        "report": document(report) if report else None,
        "slices": [_document(each) for each in explained],
        "unreadable": unreadable,
        "silent_relays": list(silent_relays([id_], deps)),
    }
    click.echo(json.dumps(shown, indent=2) if output == "json" else yaml.safe_dump(shown, sort_keys=False).rstrip())


def _found(cluster: ClusterId, name: str, deps: ReconcileDeps) -> tuple[SliceRecord, ...]:
    """Return the slices of a name; of one that is not on record, say what is not known while the relay is not heard."""
    try:
        return find(cluster, name, deps.store)
    except Permanent as problem:
        silent = " ".join(silent_relays([cluster], deps))
        raise Permanent(
            f"{problem}. It may be newer than what is on record: {silent}" if silent else str(problem)
        ) from None


def _explained(
    cluster: ClusterId, slices: Collection[ClaimId | SliceId], deps: ReconcileDeps
) -> tuple[list[Explained], list[str]]:
    """Return the explanation of each slice, and why those cannot be explained whose records cannot be read."""
    explained: list[Explained] = []
    unreadable: list[str] = []
    for slice_ in slices:
        try:
            each = explain(cluster, slice_, deps)
        except Permanent as problem:
            unreadable.append(str(problem))
        else:
            explained += [each] if each else []
    return explained, unreadable


def _report_text(name: str, report: Report, deps: ReconcileDeps) -> Iterator[str]:
    now = deps.clock.now()
    yield name
    yield f"{report.reason} for {words.span(now - report.since)}: {report.message}"
    if report.pinning is not None:
        yield f"  {PINNED_TEXTS[report.pinning]}"
    for wait in report.waits:
        yield f"  {wait.count} x {wait.phase}, {wait.reason}, since {words.clock(wait.since, now)}: {wait.message}"
        yield f"    Jobs: {', '.join(wait.jobs)}{', ...' if wait.count > len(wait.jobs) else ''}"
        if wait.retry_at is not None:
            yield f"    Next attempt: {words.moment(wait.retry_at, now)}"
        if wait.remedy:
            yield f"    {wait.remedy}"
    yield ""


def _document(explained: Explained) -> dict[str, Any]:
    record, seen, decision = explained.record, explained.seen, explained.decision
    return {
        "record": documents([record])[0],
        "seen": words.seen(seen.pool),
        "decision": {
            "phase": decision.record.phase.value,
            "reason": decision.reason.value,
            "message": decision.message,
            "actions": [words.ordered(action, record, explained.settings.vendor) for action in decision.actions],
        },
    }


def _text(explained: Explained, deps: ReconcileDeps) -> Iterator[str]:
    record, now = explained.record, deps.clock.now()
    job = record.job
    yield f"{record.name}  ({job.owner.namespace}/{job.job_name}, cluster {job.cluster})"
    yield words.paragraph(record, now, explained.settings)
    yield ""
    for title, text in _facts(explained, deps):
        yield f"{title:<{_LABEL}}{text}"
    yield (f"{'History':<{_LABEL}}" + ("" if record.transitions else "none")).rstrip()
    for each in record.transitions:
        yield f"  {each.at:%Y-%m-%d %H:%M:%S}  {each.phase:<13}{each.reason}: {each.message}"
    yield ""


def _occupants(hosts: Hosts) -> str:
    return ", ".join(f"{each.owner.namespace}/{each.job}" for each in hosts.occupants) or "none"


def _facts(explained: Explained, deps: ReconcileDeps) -> Iterator[tuple[str, str]]:
    record, now = explained.record, deps.clock.now()
    yield "Slice", words.shape(record)
    if record.unclaimed:
        yield "Claim", f"none has it; it was {record.last_claim}'s"
    if record.first_job is not None:
        yield "Made for", f"{record.first_job.owner.namespace}/{record.first_job.job_name}"
    if record.spec is not None and record.spec.jobs > 1:
        yield "Shared by", f"{record.spec.jobs} Jobs of one pod, which {record.job.job_name} leads"
    message = f": {record.desire_message}" if record.desire_message else ""
    yield "Desire", f"{record.desire}{message}{_confirmed(record, now)}"
    yield from _pool_facts(explained)
    if record.claim.earlier:
        yield "Had before", ", ".join(record.claim.earlier)
    decision = explained.decision
    yield "Decision", f"{decision.record.phase}, {decision.reason}: {decision.message}"
    for action in decision.actions:
        yield "Action", words.ordered(action, record, explained.settings.vendor)
    if decision.reason in IN_LINE:
        yield "Queue", _queue(record, deps)
    yield from _reservation(record, deps)
    if record.note:
        yield "Note", record.note


def _reservation(record: SliceRecord, deps: ReconcileDeps) -> Iterator[tuple[str, str]]:
    """Yield what is known of the reservation that a slice is of."""
    spec = record.made_as or record.spec
    limiter = deps.store.limiter(record.cluster) if spec is not None and spec.capacity.reservation else None
    if spec is None or limiter is None:
        return
    known = limiter.value.reservations.get(capacity_pool_of(spec))
    if known is not None:
        yield "Reservation", f"{known.place.name}: {described(known, deps.clock.now())}"


def _pool_facts(explained: Explained) -> Iterator[tuple[str, str]]:
    """Yield what there is of a slice's pool: nothing, if none was requested, or it is gone."""
    record, seen, hosts = explained.record, explained.seen.pool, explained.record.current.hosts
    if isinstance(seen, Absent) and (record.current.create_requested_at is None or record.phase is Phase.GONE):
        return
    yield "Pool", f"{_pool(record)}: {words.seen(seen)}"
    closed = f", {hosts.closed} closed to new pods" if hosts.closed else ""
    yield "Hosts", f"{words.hosts(record)} work{closed}, {hosts.joined} joined"
    yield "Occupants", _occupants(hosts)


def _confirmed(record: SliceRecord, now: datetime) -> str:
    return (
        f"; demand last confirmed {words.moment(record.claim.demand_confirmed_at, now)}"
        if record.claim.demand_confirmed_at
        else ""
    )


def _pool(record: SliceRecord) -> str:
    return str(documents([record])[0]["pool"] or "none: all attempts were used")


def _queue(record: SliceRecord, deps: ReconcileDeps) -> str:
    """Return the slice's position in the queue of its cluster, up to `most`, and the number of running operations."""
    most = 100
    queued = [each.id for each in deps.store.queued_slices(record.cluster, most)]
    position = f"position {queued.index(record.id) + 1}" if record.id in queued else f"after position {most}"
    return f"{position}; operations in progress: {len(deps.store.slots(record.cluster))}"
