"""`slices hold`, `release`, `pause` and `resume`: a hand on slices and clusters."""

from __future__ import annotations

from collections.abc import Sequence

import click

from tpu_slices.domain.model.records import Phase, SliceRecord
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.flows import edits
from tpu_slices_cli.screen import confirmed
from tpu_slices_cli.session import Session

_CLUSTER = click.option("--cluster", metavar="ID", help="The cluster; may be left out where there is only one.")


@click.command(name="hold", short_help="Keep a slice exactly as it is.")
@click.argument("name")
@_CLUSTER
@click.option("--note", metavar="TEXT", help="Why, for others; kept on the record.")
@click.pass_obj
def hold_command(session: Session, name: str, cluster: str | None, note: str | None) -> None:
    """Let nothing be created or deleted for a slice, whatever its JobSet does, until `slices resume NAME`.

    NAME is a slice, a node pool, NAMESPACE/JOB, or NAMESPACE/JOBSET for all of its slices. What is held is paid for.
    """
    id_ = session.cluster(cluster)
    for record in _there(edits.find(id_, name, session.deps.store)):
        held = edits.edit(id_, record.id, edits.hold(note), session.deps)
        click.echo(
            f"{record.id} is held: `slices resume {record.id}` ends it." if held else f"{record.id} was held already."
        )


@click.command(name="release", short_help="Give a slice back now.")
@click.argument("name")
@_CLUSTER
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def release_command(session: Session, name: str, cluster: str | None, *, yes: bool) -> None:
    """Give a slice back, although its JobSet may still want it; it is not bought again. Whoever runs on it is killed.

    NAME is a slice, a node pool, NAMESPACE/JOB, or NAMESPACE/JOBSET for all of its slices.
    """
    id_ = session.cluster(cluster)
    records = _there(edits.find(id_, name, session.deps.store))
    for record in records:
        click.echo(f"{record.id}: {record.phase}, {_who_is_on_it(record)}")
    if not records or not confirmed(f"Delete the node pools of {_many(records)}?", yes=yes):
        return
    for record in records:
        changed = edits.edit(id_, record.id, edits.release, session.deps)
        click.echo(f"{record.id} is being released." if changed else f"{record.id} was being released already.")


@click.command(name="pause", short_help="Stop creating and deleting in a whole cluster.")
@_CLUSTER
@click.option("--message", "-m", required=True, metavar="TEXT", help="Shown to everybody who waits.")
@click.pass_obj
def pause_command(session: Session, cluster: str | None, message: str) -> None:
    """Create and delete nothing in a cluster until `slices resume --cluster ID`. What runs goes on running."""
    id_ = session.cluster(cluster)
    session.written.pause(id_, message)
    click.echo(f"{id_} is paused: `slices resume --cluster {id_}` goes on.")


@click.command(name="resume", short_help="End a hold, or the pause of a cluster.")
@click.argument("name", required=False)
@_CLUSTER
@click.pass_obj
def resume_command(session: Session, name: str | None, cluster: str | None) -> None:
    """End the hold of NAME, a slice or all of a JobSet; without NAME, the pause of the cluster."""
    id_ = session.cluster(cluster)
    if name is None:
        _end_pause(session, id_)
        return
    for record in edits.find(id_, name, session.deps.store):
        freed = edits.edit(id_, record.id, edits.resume, session.deps)
        click.echo(f"{record.id} goes on." if freed else f"{record.id} was not held.")


def _end_pause(session: Session, cluster: ClusterId) -> None:
    if session.written.paused(cluster) is None:
        click.echo(f"{cluster} was not paused.")
        return
    session.written.resume(cluster)
    click.echo(f"{cluster} goes on: {edits.wake(cluster, session.deps)} slices are looked at.")


def _there(records: Sequence[SliceRecord]) -> list[SliceRecord]:
    """Leave out, aloud, what is gone: there is nothing to be done about it."""
    for record in records:
        if record.phase is Phase.GONE:
            click.echo(f"{record.id} is gone.")
    return [record for record in records if record.phase is not Phase.GONE]


def _who_is_on_it(record: SliceRecord) -> str:
    occupants = ", ".join(f"{occupant.owner.namespace}/{occupant.job}" for occupant in record.occupants)
    return f"{occupants} runs on it" if occupants else "nobody is on it"


def _many(records: Sequence[SliceRecord]) -> str:
    return "this slice" if len(records) == 1 else f"these {len(records)} slices"
