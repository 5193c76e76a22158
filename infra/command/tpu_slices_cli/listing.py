"""`slices list`: slices as a table, JSON or YAML, filtered and watched."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from time import sleep
from typing import Any

import click
import yaml
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.domain.records.heartbeats import silent_since
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.reporting.reason_texts import relay_silence
from tpu_slices.ports.deps import IntakeDeps
from tpu_slices.ports.store import SliceStore
from tpu_slices.wire.documents import encode
from tpu_slices_cli.screen import console, echo
from tpu_slices_cli.session import Session
from tpu_slices_cli.words import is_costly, message, reason, shape, span

COLOURS = {
    Phase.READY: "green",
    Phase.PROVISIONING: "cyan",
    Phase.WAITING: "yellow",
    Phase.REFUSED: "red",
    Phase.BLOCKED: "bold red",
    Phase.GONE: "dim",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    clusters: tuple[ClusterId, ...]
    namespace: str | None = None
    owner: str | None = None
    phases: frozenset[Phase] = frozenset()
    gone: bool = False
    """True: include slices in phase GONE."""

    def read(self, store: SliceStore) -> list[SliceRecord]:
        """Return the matching records, ordered by cluster, namespace, workload and Job."""
        lists = store.every_slice if self.gone or Phase.GONE in self.phases else store.kept_slices
        records = (stored.value for cluster in self.clusters for stored in lists(cluster))
        return sorted((record for record in records if self._matches(record)), key=_order)

    def _matches(self, record: SliceRecord) -> bool:
        job = record.job
        return (
            self.namespace in {None, job.owner.namespace}
            and self.owner in {None, job.owner.name}
            and (not self.phases or record.phase in self.phases)
        )


@click.command(name="list")
@click.option("--cluster", metavar="ID", help="Only slices of this cluster.")
@click.option("--namespace", "-n", help="Only slices of this namespace.")
@click.option("--owner", "--jobset", metavar="NAME", help="Only slices of the workload of this name.")
@click.option(
    "--phase",
    "phases",
    multiple=True,
    type=click.Choice([*Phase], case_sensitive=False),
    help="Only slices in this phase; can be repeated.",
)
@click.option("--all", "gone", is_flag=True, help="Include slices in phase GONE.")
@click.option(
    "--output", "-o", type=click.Choice(["table", "wide", "json", "yaml"]), default="table", show_default=True
)
@click.option("--watch", "-w", is_flag=True, help="Watch for changes until Ctrl-C.")
@click.option(
    "--interval",
    type=click.FloatRange(min=0.5),
    default=5.0,
    show_default=True,
    help="Seconds between two refreshes with --watch.",
)
@click.pass_obj
def list_command(  # noqa: PLR0913 - one for each option
    session: Session,
    *,
    cluster: str | None,
    namespace: str | None,
    owner: str | None,
    phases: Sequence[Phase],
    gone: bool,
    output: str,
    watch: bool,
    interval: float,
) -> None:
    """List slices with their Job, phase, hosts, reason and message.

    \b
    slices list --namespace research --phase waiting --phase refused
    slices list --owner llama --watch
    """  # noqa: D301 - click keeps the line breaks after this mark
    store = session.deps.store
    matching = Filter(
        clusters=session.clusters(cluster),
        namespace=namespace,
        owner=owner,
        phases=frozenset(Phase(phase) for phase in phases),
        gone=gone,
    )
    if watch:
        _watch(matching, session, interval, wide=output == "wide")
        return
    records = matching.read(store)
    if output in {"json", "yaml"}:
        click.echo(_machine(records, output))
    elif records:
        console().print(_table(records, session, wide=output == "wide"))
    else:
        echo("No slices found.", err=True)
    for line in silent_relays(matching.clusters, session.deps):
        echo(line, err=output in {"json", "yaml"})


def documents(records: Iterable[SliceRecord]) -> list[dict[str, Any]]:
    """Return the records with the fields that the Firestore console shows, times in ISO 8601."""
    return [json.loads(json.dumps(encode(record), default=_plain)) for record in records]


def silent_relays(clusters: Iterable[ClusterId], deps: IntakeDeps) -> Iterator[str]:
    """Yield a line for each of these clusters whose relay is silent."""
    now = deps.clock.now()
    for cluster in clusters:
        heartbeat = deps.store.heartbeat(cluster)
        since = silent_since(heartbeat.value if heartbeat else None, now)
        if since is not None:
            yield f"{cluster}: {relay_silence(since, now)}"


def _machine(records: Iterable[SliceRecord], output: str) -> str:
    listed = {"slices": documents(records)}
    return json.dumps(listed, indent=2) if output == "json" else yaml.safe_dump(listed, sort_keys=False).rstrip()


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _watch(matching: Filter, session: Session, interval: float, *, wide: bool) -> None:
    """Redraw the table on a terminal; elsewhere print a line per change of phase or reason, or of a relay's silence."""
    screen, store, clock = console(), session.deps.store, session.deps.clock
    if screen.is_terminal:
        with Live(console=screen, auto_refresh=False) as live:
            while True:
                table = _table(matching.read(store), session, wide=wide)
                live.update(Group(table, *silent_relays(matching.clusters, session.deps)), refresh=True)
                sleep(interval)
    known: dict[str, SliceRecord] = {}
    silent: set[str] = set()
    while True:
        silent_now = set(silent_relays(matching.clusters, session.deps))
        for line in sorted(silent_now - silent):
            echo(f"{clock.now():%H:%M:%S} {line}")
        silent = silent_now
        for record in matching.read(store):
            before = known.get(record.name)
            if before is None or _state(before) != _state(record):
                said = f"{record.phase} {reason(record)}: {_message(record, session)}"
                echo(f"{clock.now():%H:%M:%S} {_job(record)} {said}")
            known[record.name] = record
        sleep(interval)


def _state(record: SliceRecord) -> tuple[Phase, Reason, bool]:
    return record.phase, record.reason, record.hold


def _message(record: SliceRecord, session: Session) -> str:
    """Return the message of a slice; the settings are read if what it costs is told."""
    return message(record, session.settings_of(record.cluster) if is_costly(record) else None)


def _table(records: Sequence[SliceRecord], session: Session, *, wide: bool) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    extra = ("POOL", "SPEC") if wide else ()
    for title in ("CLUSTER", "JOB", "SLICE", "PHASE", "HOSTS", "REASON", "SINCE", *extra, "MESSAGE"):
        table.add_column(title, overflow="fold", no_wrap=title in {"PHASE", "HOSTS", "SINCE"})
    for record in records:
        hosts = record.spec.hosts if record.spec else "?"
        more = (_pool(record), shape(record)) if wide else ()
        table.add_row(
            record.cluster,
            _job(record),
            record.name,
            Text(record.phase, style=COLOURS.get(record.phase, "")),
            f"{record.current.hosts.usable}/{hosts}",
            reason(record),
            span(session.deps.clock.now() - record.since),
            *more,
            _message(record, session),
        )
    return table


def _pool(record: SliceRecord) -> str:
    return str(encode(record)["pool"] or "")


def _job(record: SliceRecord) -> str:
    return f"{record.owner.namespace}/{record.job.job_name}"


def _order(record: SliceRecord) -> tuple[str, str, str, str, int]:
    job = record.job
    return job.cluster, job.owner.namespace, job.owner.name, job.replicated_job, job.job_index
