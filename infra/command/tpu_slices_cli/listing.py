"""`slices list`: slices as a table, JSON or YAML, filtered and watched."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
from tpu_slices.domain.model.slices import ClaimId, ClusterId, SliceId
from tpu_slices.domain.records.heartbeats import STALE_AFTER, silent_since
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.reporting.reason_texts import as_of
from tpu_slices.flows import edits
from tpu_slices.ports.deps import IntakeDeps
from tpu_slices.ports.errors import Permanent
from tpu_slices.ports.store import Names, SliceStore
from tpu_slices.wire.documents import encode
from tpu_slices_cli import mirrored
from tpu_slices_cli.completion import complete_clusters, complete_names, complete_namespaces
from tpu_slices_cli.screen import console, echo
from tpu_slices_cli.session import Session
from tpu_slices_cli.text import natural
from tpu_slices_cli.words import hosts, is_costly, message, reason, shape, span

COLOURS = {
    Phase.READY: "green",
    Phase.PROVISIONING: "cyan",
    Phase.WAITING: "yellow",
    Phase.REFUSED: "red",
    Phase.BLOCKED: "bold red",
    Phase.GONE: "dim",
}


_Place = tuple[ClusterId, ClaimId | SliceId]
_URGENCY = (
    Phase.BLOCKED,
    Phase.REFUSED,
    Phase.WAITING,
    Phase.QUEUED,
    Phase.PROVISIONING,
    Phase.RELEASING,
    Phase.READY,
    Phase.GONE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    clusters: tuple[ClusterId, ...]
    namespace: str | None = None
    owner: str | None = None
    names: tuple[str, ...] = ()
    """Names of slices, pools, Jobs or workloads; none: all."""
    phases: frozenset[Phase] = frozenset()
    gone: bool = False
    """True: include slices in phase GONE."""

    def read(self, store: SliceStore) -> list[SliceRecord]:
        """Return the matching records, ordered by cluster, namespace, workload and Job."""
        lists = store.every_slice if self.with_ended else store.kept_slices
        records = (stored.value for cluster in self.clusters for stored in lists(cluster))
        return sorted((record for record in records if self._matches(record)), key=_order)

    @property
    def with_ended(self) -> bool:
        """Whether slices in phase GONE are read."""
        return self.gone or Phase.GONE in self.phases

    def ended(self, store: SliceStore, *, found: bool) -> int:
        """Return how many slices are left out because they are GONE.

        What a namespace or a name leaves of them takes a read of each, and is counted only if nothing else was found.
        """
        if self.with_ended or self.phases:
            return 0
        if not (self.namespace or self.owner or self.names):
            return sum(store.phase_count(cluster, Phase.GONE) for cluster in self.clusters)
        return 0 if found else len(replace(self, gone=True).read(store))

    def _matches(self, record: SliceRecord) -> bool:
        job = record.job
        return (
            self.namespace in {None, job.owner.namespace}
            and self.owner in {None, job.owner.name}
            and (not self.names or not names_of(record).isdisjoint(self.names))
            and (not self.phases or record.phase in self.phases)
        )


BY_JOB = "job"
SORTS: Mapping[str, Callable[[SliceRecord], Any]] = {
    BY_JOB: lambda _: 0,
    "phase": lambda record: _URGENCY.index(record.phase),
    "since": lambda record: record.since,
    "chips": lambda record: -(record.made_as.chips if record.made_as else 0),
}
"""What a list is sorted by, before the order of `Filter.read`: by phase comes first what people must look at."""


def names_of(record: SliceRecord) -> set[str]:
    """Return the names by which a slice is listed: those of `slices explain`, and its workload's alone."""
    owner = record.owner
    of_workload = (owner.name, owner.full_name, f"{owner.kind}/{owner.full_name}")
    return {record.name, record.id, record.last_claim, *of_workload, *edits.names(record)}


@click.command(name="list")
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete_names)
@click.option("--cluster", metavar="ID", help="Only slices of this cluster.", shell_complete=complete_clusters)
@click.option("--namespace", "-n", help="Only slices of this namespace.", shell_complete=complete_namespaces)
@click.option("--all-namespaces", "-A", "everywhere", is_flag=True, help="Slices of all namespaces: the default.")
@click.option("--owner", "--jobset", metavar="NAME", help="Only slices of the workload of this name.")
@click.option(
    "--phase",
    "phases",
    multiple=True,
    type=click.Choice([*Phase], case_sensitive=False),
    help="Only slices in this phase; can be repeated.",
)
@click.option("--all", "gone", is_flag=True, help="Also list ended slices: those in phase GONE.")
@click.option(
    "--sort-by",
    type=click.Choice([*SORTS]),
    default=BY_JOB,
    show_default=True,
    help="job: by name. phase: slices that need somebody first. since: slices that have been in their phase for the "
    "longest time first. chips: the largest slices first.",
)
@click.option(
    "--output", "-o", type=click.Choice(["table", "wide", "json", "yaml"]), default="table", show_default=True
)
@click.option(
    "--watch",
    "-w",
    is_flag=True,
    help="Watch for changes until Ctrl-C. With -o json, each slice that changes is an object on a line of its own; "
    "with -o yaml, a document.",
)
@click.option(
    "--interval",
    type=click.FloatRange(min=0.5),
    default=5.0,
    show_default=True,
    help="Seconds between two refreshes with --watch.",
)
@click.option(
    "--from-cluster",
    is_flag=True,
    help="Read the TPUSlices in the cluster of kubectl's current context, with your rights there, in place of "
    "Firestore.",
)
@click.option("--context", metavar="NAME", help="As --from-cluster, with this context of the kubeconfig.")
@click.pass_obj
def list_command(  # noqa: PLR0913 - one for each option
    session: Session,
    *,
    names: tuple[str, ...],
    cluster: str | None,
    namespace: str | None,
    everywhere: bool,
    owner: str | None,
    phases: Sequence[Phase],
    gone: bool,
    sort_by: str,
    output: str,
    watch: bool,
    interval: float,
    from_cluster: bool,
    context: str | None,
) -> None:
    """List slices with their Job, phase, hosts, reason and message.

    Without NAME, all slices of all clusters and namespaces are listed. NAME is a workload, with or without its
    namespace, a NAMESPACE/JOB, a slice or its pool.

    \b
    slices list llama research/gemma
    slices list -n research --phase waiting --phase refused
    slices list --sort-by since --watch
    """  # noqa: D301 - click keeps the line breaks after this mark
    if everywhere and namespace:
        raise click.UsageError("--all-namespaces and --namespace exclude each other")
    narrowed: dict[str, Any] = {"namespace": namespace, "owner": owner, "names": names}
    narrowed["phases"] = frozenset(Phase(phase) for phase in phases)
    if from_cluster or context:
        more = watch or gone or bool(cluster) or sort_by != BY_JOB
        mirrored.list_mirrored(mirrored.Asked(context=context, **narrowed), output, more=more)
        return
    with mirrored.offered_instead():
        matching = Filter(clusters=session.clusters(cluster), gone=gone, **narrowed)
        if watch:
            _watch(matching, session, interval, output=output, by=sort_by)
        else:
            _print(matching, session, output=output, by=sort_by)


def _print(matching: Filter, session: Session, *, output: str, by: str) -> None:
    """Print the list; Permanent: there is no slice of one of the names."""
    store, for_machines = session.deps.store, output in {"json", "yaml"}
    records = sorted(matching.read(store), key=SORTS[by])
    if for_machines:
        click.echo(_machine(records, silent_relays(matching.clusters, session.deps), output))
    elif records:
        console().print(_table(records, session, wide=output == "wide"))
    elif not matching.names:
        echo("No slices found.", err=True)
    for line in silent_relays(matching.clusters, session.deps):
        echo(line, err=for_machines)
    if ended := matching.ended(store, found=bool(records)):
        are = "1 ended slice is" if ended == 1 else f"{ended:,} ended slices are"
        echo(f"{are} not shown: --all shows them too.", err=True)
    found = {name for record in records for name in names_of(record)}
    if missing := [name for name in matching.names if name not in found]:
        raise Permanent(f"no slice of {', '.join(missing)} found in {', '.join(matching.clusters)}")


def documents(records: Iterable[SliceRecord]) -> list[dict[str, Any]]:
    """Return the records with the fields that the Firestore console shows, times in ISO 8601."""
    return [json.loads(json.dumps(encode(record), default=_plain)) for record in records]


def silent_relays(clusters: Iterable[ClusterId], deps: IntakeDeps) -> Iterator[str]:
    """Yield a line for each of these clusters whose relay was not heard lately: from when what is told of it is."""
    now = deps.clock.now()
    for cluster in clusters:
        heartbeat = deps.store.heartbeat(cluster)
        heard_at = silent_since(heartbeat.value if heartbeat else None, now, STALE_AFTER)
        if heard_at is not None:
            yield f"{cluster}: {as_of(heard_at, now)}"


def _machine(records: Iterable[SliceRecord], silent: Iterable[str], output: str) -> str:
    listed = {"slices": documents(records), "silent_relays": list(silent)}
    return json.dumps(listed, indent=2) if output == "json" else yaml.safe_dump(listed, sort_keys=False).rstrip()


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _watch(matching: Filter, session: Session, interval: float, *, output: str, by: str) -> None:
    """Redraw the table on a terminal; elsewhere, and for machines, print what changes of slices and relays' silence."""
    screen, store = console(), session.deps.store
    for_machines = output in {"json", "yaml"}
    if screen.is_terminal and not for_machines:
        with Live(console=screen, auto_refresh=False) as live:
            while True:
                table = _table(sorted(matching.read(store), key=SORTS[by]), session, wide=output == "wide")
                live.update(Group(table, *silent_relays(matching.clusters, session.deps)), refresh=True)
                sleep(interval)
    known: dict[_Place, SliceRecord] = {}
    silent: set[str] = set()
    while True:
        silent_now = set(silent_relays(matching.clusters, session.deps))
        for line in sorted(silent_now - silent):
            echo(f"{session.deps.clock.now():%H:%M:%S} {line}", err=for_machines)
        silent = silent_now
        for record in _changes(matching, known, store):
            _tell(record, session, output)
        sleep(interval)


def _changes(matching: Filter, known: dict[_Place, SliceRecord], store: SliceStore) -> Iterator[SliceRecord]:
    """Yield what changed since `known`, which is brought up to date; what matches no more is told once as it is now."""
    found = {(record.cluster, record.name): record for record in matching.read(store)}
    for place in known.keys() - found.keys():
        with contextlib.suppress(Permanent):
            stored = store.together(place[0], Names.of(known[place].name)).slice
            if stored is not None and _state(stored.value) != _state(known[place]):
                yield stored.value
    for place, record in found.items():
        if place not in known or _state(known[place]) != _state(record):
            yield record
    known.clear()
    known.update(found)


def _tell(record: SliceRecord, session: Session, output: str) -> None:
    """Print one slice: a line for people, an object in a line, or a document."""
    if output == "json":
        click.echo(json.dumps(documents([record])[0]))
    elif output == "yaml":
        click.echo(yaml.safe_dump(documents([record])[0], sort_keys=False, explicit_start=True).rstrip())
    else:
        said = f"{record.phase} {reason(record)}: {_message(record, session)}"
        echo(f"{session.deps.clock.now():%H:%M:%S} {_job(record)} {said}")


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
        more = (_pool(record), shape(record)) if wide else ()
        table.add_row(
            record.cluster,
            _job(record),
            record.name,
            Text(record.phase, style=COLOURS.get(record.phase, "")),
            hosts(record),
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


def _order(record: SliceRecord) -> tuple[Any, ...]:
    job = record.job
    return *map(natural, (job.cluster, job.owner.namespace, job.owner.name, job.replicated_job)), job.job_index
