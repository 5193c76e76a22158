"""`slices doctor`: one round trip through every part."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from time import sleep

import click

from tpu_slices.domain.model.gangs import Gangs
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.domain.records.heartbeats import RelayHeartbeat
from tpu_slices.flows import round_trip
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.log_events import LogEvent
from tpu_slices.ports.store import SliceStore
from tpu_slices_cli.completion import complete_clusters
from tpu_slices_cli.examination import (
    LINES_WITHIN,
    Finding,
    Seen,
    alerts,
    all_well,
    examine,
    next_steps,
    queries,
    records,
    report,
    schedule,
    topics,
    well,
    wrong,
)
from tpu_slices_cli.examined.capacity import capacity
from tpu_slices_cli.screen import echo
from tpu_slices_cli.session import Session
from tpu_slices_cli.text import numbered

NOT_WELL = 1
LOOK_EVERY = 2.0  # seconds


@click.command(name="doctor")
@click.option(
    "--cluster",
    metavar="ID",
    help="ID of the cluster; without it, all that are configured.",
    shell_complete=complete_clusters,
)
@click.option("--patience", default=150, show_default=True, metavar="SECONDS", help="How long to wait for answers.")
@click.pass_context
def doctor_command(context: click.Context, cluster: str | None, patience: int) -> None:
    """Check every part by one round trip: records and indexes, topics, each relay, receive, reconcile, sweep, clocks.

    Also the way of updates, which become Events, and whether lines of the log are counted, of which alerts come.
    Nothing is created or deleted by it. What is wrong is printed with the command that shows more; then the exit code
    is 1. It takes up to a minute if all is well: the sweep runs each minute. It ends with what to do next, in order.
    """
    session: Session = context.obj
    deps = session.deps
    clusters = [ClusterId(cluster)] if cluster else list(deps.store.clusters())
    found = {"records": [_records(deps.store, clusters, deps.clock.now())]}
    _print("records", found["records"])
    connected: dict[ClusterId, list[Finding]] = {}
    for each in clusters:
        if _is_configured(each, found, session) and (of_topics := _topics(each, found, session)) is not None:
            connected[each] = of_topics
    asked = {each: round_trip.ask(each, deps) for each in connected}
    until = deps.clock.now() + timedelta(seconds=patience)
    for each, asked_at in asked.items():
        subject = f"cluster {each}"
        found[subject] = connected[each] + _examined(each, asked_at, until, session)
        found[subject] += capacity(each, session.settings_of(each), deps.store, deps.clock.now())
        _print(subject, found[subject])
    if of_alerts := _alerts(until, session):
        found["alerts"] = of_alerts
        _print("alerts", of_alerts)
    if not clusters:
        echo("No cluster is configured: nothing else can be checked.")
    well = all_well(found)
    slices = sum(map(deps.store.slice_count, asked)) if well and asked else None
    for line in numbered("Next:", next_steps(found, slices)):
        echo(line)
    if not well:
        context.exit(NOT_WELL)


def _is_configured(cluster: ClusterId, found: dict[str, list[Finding]], session: Session) -> bool:
    """Return whether a cluster has settings that are in force; if not, add that to what is found."""
    try:
        if session.deps.store.settings(cluster) is not None:
            return True
        problem = f"There are no settings of {cluster}: its relay's facts are rejected."
    except Permanent as invalid:
        problem = f"Its settings cannot be read: {invalid}"
    finding = wrong(problem, f"slices configure infra/clusters/PROJECT/{cluster}.yaml")
    _print(f"cluster {cluster}", [finding])
    found[f"cluster {cluster}"] = [finding]
    return False


def _topics(cluster: ClusterId, found: dict[str, list[Finding]], session: Session) -> list[Finding] | None:
    """Return what is found of a cluster's topics; None: some are missing, which is added to what is found."""
    try:
        finding = topics(cluster, session.messaging.missing(cluster))
    except (Permanent, Temporary) as unknown:
        return [well(f"Whether its topics and subscriptions are there is not known: {unknown}")]
    if finding.is_well:
        return [finding]
    _print(f"cluster {cluster}", [finding])
    found[f"cluster {cluster}"] = [finding]
    return None


def _schedule(seen: Seen, session: Session) -> Finding:
    try:
        return schedule(seen, session.messaging.schedule(seen.cluster))
    except (Permanent, Temporary) as unknown:
        return well(f"Whether there are ticks for it is not known: {unknown}")


def _records(store: SliceStore, clusters: Sequence[ClusterId], now: datetime) -> Finding:
    """Make every query once, for one cluster: the same index serves all."""
    made = queries(store, clusters[0] if clusters else ClusterId("none"), now)
    failed: dict[str, str] = {}
    for name, query in made.items():
        try:
            query()
        except (Permanent, Temporary) as error:
            failed[name] = str(error)
    return records(len(made), failed)


def _examined(cluster: ClusterId, asked_at: datetime, until: datetime, session: Session) -> list[Finding]:
    """Return what is found of a cluster, as soon as all is well, or when the patience is over."""
    while True:
        now = session.deps.clock.now()
        stored = session.deps.store.heartbeat(cluster)
        heartbeat = stored.value if stored else RelayHeartbeat.of(cluster)
        project = session.settings.project
        settings = session.settings_of(cluster)
        gangs = settings.gangs if settings is not None else Gangs.NONE
        seen = Seen(project=project, cluster=cluster, asked_at=asked_at, now=now, heartbeat=heartbeat, gangs=gangs)
        found = examine(seen)
        if now >= until or all(finding.is_well for finding in found):
            return found if seen.swept else [*found, _schedule(seen, session)]
        sleep(LOOK_EVERY)


def _alerts(until: datetime, session: Session) -> list[Finding]:
    """Return whether a sweep's line is counted; nothing on the local stack, where none ever is."""
    clock, project = session.deps.clock, session.settings.project
    since, counted = clock.now() - LINES_WITHIN, False
    try:
        if session.lines is None:
            return []
        while not (counted := session.lines.counts(LogEvent.SWEEP_COMPLETED, since)) and clock.now() < until:
            sleep(LOOK_EVERY)
    except (Permanent, Temporary) as unknown:
        return [alerts(project, counted=None, why=str(unknown))]
    return [alerts(project, counted=counted)]


def _print(subject: str, findings: Sequence[Finding]) -> None:
    for line in report(subject, findings):
        echo(line)
