"""`slices hold`, `release`, `pause` and `resume`: control slices and clusters."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import click

from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.domain.reconciling.brake import stops_told
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.flows import brakes, edits
from tpu_slices_cli.completion import complete_clusters, complete_names
from tpu_slices_cli.screen import confirmed, echo
from tpu_slices_cli.session import Session
from tpu_slices_cli.words import meanwhile

_CLUSTER = click.option(
    "--cluster",
    metavar="ID",
    help="ID of the cluster; optional if only one is configured.",
    shell_complete=complete_clusters,
)


@click.command(name="hold")
@click.argument("name", shell_complete=complete_names)
@_CLUSTER
@click.option("--note", metavar="TEXT", help="Why, for other operators; stored in the record.")
@click.pass_obj
def hold_command(session: Session, name: str, cluster: str | None, note: str | None) -> None:
    """Put a slice on hold: nothing is created or deleted for it, whatever its JobSet does, until `slices resume NAME`.

    NAME is a slice, its pool, NAMESPACE/JOB, or NAMESPACE/JOBSET for all of its slices. The hosts of a slice on hold
    are still billed.
    """
    id_ = session.cluster(cluster)
    for record in _not_gone(edits.find(id_, name, session.deps.store)):
        hold = edits.hold(note, session.operator, session.deps.clock.now())
        changed = edits.edit(id_, record.name, hold, session.deps)
        held = hold(record)
        state = f"is {held.held}; `slices resume {record.name}` ends it" if changed else f"was already {held.held}"
        echo(f"{record.name} {state}{meanwhile(held, session.settings_of(id_))}.")


@click.command(name="release")
@click.argument("name", shell_complete=complete_names)
@_CLUSTER
@click.option("--force", is_flag=True, help="Delete it without asking the relay who runs on it: if the relay is dead.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.pass_obj
def release_command(session: Session, name: str, cluster: str | None, *, force: bool, yes: bool) -> None:
    """Release a slice: delete its hosts, even if its JobSet needs it, and do not create it again.

    Pods of its JobSet that run on the slice are killed. While Jobs of other JobSets run on it, it is kept. With
    --force nobody is asked and nobody is spared, and the record says so.

    NAME is a slice, its pool, NAMESPACE/JOB, or NAMESPACE/JOBSET for all of its slices.
    """
    id_ = session.cluster(cluster)
    records = _not_gone(edits.find(id_, name, session.deps.store))
    for record in records:
        echo(f"{record.name}: {record.phase}, {_occupancy(record)}")
    if not records or not confirmed(f"Delete the hosts of {_many(records)}?", yes=yes):
        return
    for record in records:
        change = partial(edits.force_release, now=session.deps.clock.now()) if force else edits.release
        changed = edits.edit(id_, record.name, change, session.deps)
        echo(f"{record.name} is being released." if changed else f"{record.name} was already being released.")


@click.command(name="pause")
@_CLUSTER
@click.option("--message", "-m", required=True, metavar="TEXT", help="Why; shown to users whose slices wait.")
@click.pass_obj
def pause_command(session: Session, cluster: str | None, message: str) -> None:
    """Pause a cluster: no slice is created or deleted in it until `slices resume --cluster ID`.

    Running Jobs are not affected.
    """
    id_ = session.cluster(cluster)
    session.written.pause(id_, message)
    echo(f"{id_} is paused; `slices resume --cluster {id_}` ends the pause.")


@click.command(name="resume")
@click.argument("name", required=False, shell_complete=complete_names)
@_CLUSTER
@click.pass_obj
def resume_command(session: Session, name: str | None, cluster: str | None) -> None:
    """End the hold of a slice; without NAME, end the pause of the cluster.

    NAME is a slice, its pool, NAMESPACE/JOB, or NAMESPACE/JOBSET for all of its slices.
    """
    id_ = session.cluster(cluster)
    if name is None:
        _end_pause(session, id_)
        return
    for record in edits.find(id_, name, session.deps.store):
        changed = edits.edit(id_, record.name, edits.resume, session.deps)
        echo(f"{record.name} is no longer on hold." if changed else f"{record.name} was not on hold.")


@click.command(name="confirm-deletions")
@_CLUSTER
@click.option("--namespace", metavar="NAME", help="Only those of this namespace; all are confirmed without it.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.pass_obj
def confirm_deletions_command(session: Session, cluster: str | None, namespace: str | None, *, yes: bool) -> None:
    """Let the releases of missing workloads go on, which were stopped because so many were missing at once.

    Check first with `kubectl get jobsets -A` that they are really gone, and that the relay is that of the cluster.
    """
    id_ = session.cluster(cluster)
    where = f"namespace {namespace} of {id_}" if namespace else id_
    stored = session.deps.store.brake(id_)
    messages = list(stops_told(stored.value, namespace)) if stored else []
    if not messages:
        echo(f"No releases are stopped in {where}.")
        return
    for message in messages:
        echo(f"{message}.")
    if confirmed(f"Delete the slices of the missing workloads in {where}?", yes=yes):
        brakes.confirm(id_, session.deps, namespace)
        echo(f"The releases in {where} go on.")


def _end_pause(session: Session, cluster: ClusterId) -> None:
    if session.written.paused(cluster) is None:
        echo(f"{cluster} was not paused.")
        return
    session.written.resume(cluster)
    count = edits.wake(cluster, session.deps)
    echo(f"{cluster} is resumed. Slices to be reconciled: {count}.")


def _not_gone(records: Sequence[SliceRecord]) -> list[SliceRecord]:
    """Return the slices that are not GONE; print a line for each that is."""
    for record in records:
        if record.phase is Phase.GONE:
            echo(f"{record.name} is already gone.")
    return [record for record in records if record.phase is not Phase.GONE]


def _occupancy(record: SliceRecord) -> str:
    occupants = ", ".join(f"{each.owner.namespace}/{each.job}" for each in record.current.hosts.occupants)
    return f"occupied by {occupants}" if occupants else "not occupied"


def _many(records: Sequence[SliceRecord]) -> str:
    return "this slice" if len(records) == 1 else f"these {len(records)} slices"
