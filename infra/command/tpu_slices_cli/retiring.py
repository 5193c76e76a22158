"""`slices retire`: end all that a cluster has of the provisioner, and forget the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from time import sleep

import click

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.observations import PoolSeen
from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.domain.reconciling.relabelling import unproven
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.flows import edits
from tpu_slices.ports.errors import Permanent
from tpu_slices_cli.completion import complete_clusters
from tpu_slices_cli.screen import confirmed, echo
from tpu_slices_cli.session import Session

_STAND = {Phase.PROVISIONING, Phase.READY, Phase.RELEASING}


@click.command(name="retire")
@click.argument("cluster", shell_complete=complete_clusters)
@click.option("--message", "-m", required=True, metavar="TEXT", help="Why; shown to users whose slices are refused.")
@click.option("--interval", default=10.0, show_default=True, metavar="SECONDS", help="Seconds between two looks.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.pass_obj
def retire_command(session: Session, cluster: str, message: str, interval: float, *, yes: bool) -> None:
    """Retire a cluster: release all its slices, create none any more, and forget it once nothing is left of them.

    Pods of JobSets that run on the slices are killed. It takes as long as the deletions; after Ctrl-C they go on, and
    the same command continues. Until it has ended, `slices resume --cluster ID` lets slices be created again. Slices on
    hold are not released: end the hold first.

    Run it before the cluster's settings file is removed and what is deployed is built anew.
    """
    id_ = ClusterId(cluster)
    settings = session.deps.store.settings(id_)
    if settings is None:
        if standing := _standing(session, id_):
            names = ", ".join(record.name for record in standing)
            raise Permanent(f"{id_} has slices and no settings: run `slices configure FILE` first ({names})")
    elif not _ended(session, settings, message, interval, yes=yes):
        return
    echo(f"{id_} is forgotten: {session.written.forget(id_)} documents are deleted.")
    echo(f"Next: delete infra/clusters/PROJECT/{id_}.yaml and, in the cluster, the namespace tpu-slice-provisioner.")
    echo("Then submit the build: it deletes the cluster's topics, subscriptions and schedule.")


def _ended(session: Session, settings: ClusterSettings, message: str, interval: float, *, yes: bool) -> bool:
    """Release everything and wait until nothing is left; return False if that was not confirmed."""
    id_ = settings.cluster
    standing = _standing(session, id_)
    echo(f"{id_} has {len(standing)} slices that stand or are being created.")
    if not confirmed(f"Delete them, also under JobSets that run, and forget {id_}?", yes=yes):
        return False
    session.written.retire(id_, message)
    told: set[str] = set()
    while lines := _release(session, settings):
        for line in lines:
            if line not in told:
                echo(f"{session.deps.clock.now():%H:%M:%S} {line}")
        told.update(lines)
        sleep(interval)
    return True


def _release(session: Session, settings: ClusterSettings) -> list[str]:
    """Request the release of every slice that stands; return what is still there, a line each.

    Permanent: nothing but pools is there that nobody deletes until a person has done something.
    """
    standing = _standing(session, settings.cluster)
    for record in standing:
        edits.edit(settings.cluster, record.name, edits.release, session.deps)
    if standing:
        return [f"{record.name} {record.phase} {record.reason}: {record.message}" for record in standing]
    pools = session.deps.backend.inventory(settings)
    left_alone = _left_alone(pools, settings, session)
    awaited = [pool.name for pool in pools if pool.name not in left_alone]
    lines = [f"{name}: {why}" for name, why in left_alone.items()]
    if left_alone and not awaited:
        raise Permanent(f"{settings.cluster} is not retired. {'. '.join(lines)}. {_by_hand(settings)}")
    found = f"{settings.vendor.a_pool.lower()} without a record, which the sweep finds and adopts"
    return [*(f"{name}: {found}" for name in awaited), *lines]


def _left_alone(pools: Sequence[PoolSeen], settings: ClusterSettings, session: Session) -> dict[str, str]:
    """Return of each pool that the sweep leaves alone, by its name, why it does."""
    records = session.deps.store.slices(settings.cluster, {pool.id for pool in pools})
    known = {id_: stored.value for id_, stored in records.items()}
    vendor = settings.vendor
    nobodys = (
        f"{vendor.a_pool.lower()} with a name of ours, and neither {vendor.labels} nor a record tell whose it is: "
        "nothing deletes it"
    )
    return {
        **dict.fromkeys(unproven(pools, known, frozenset(records.unreadable)), nobodys),
        **{
            pool.name: f"its record cannot be read, so nothing deletes it: {records.unreadable[pool.id]}"
            for pool in pools
            if pool.id in records.unreadable
        },
    }


def _by_hand(settings: ClusterSettings) -> str:
    """Return what a person does about pools that are left alone."""
    how = "with its template and policy"
    if not settings.self_managed:
        _, project, _, location, _, name = settings.path.split("/")
        place = f"--cluster {name} --location {location} --project {project}"
        how = f"`gcloud container node-pools delete NAME {place}`"
    return (
        f"Find out who made it, or changed {settings.vendor.labels} or the record, and that no pod runs there. Then "
        f"restore those, or delete it, {how}, and run this again; see docs/runbook.md, Node pools belong to nobody"
    )


def _standing(session: Session, cluster: ClusterId) -> Sequence[SliceRecord]:
    """Return the slices for which something exists, or may still be created."""
    kept = (stored.value for stored in session.deps.store.kept_slices(cluster))
    return [record for record in kept if record.phase in _STAND or record.current.create_requested_at]
