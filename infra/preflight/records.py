"""What the records say of clusters that a build drops, or takes away: whether node pools may still stand in them."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from infra.preflight.findings import Finding, error, warning
from tpu_slices.domain.model.records import SliceRecord
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.ports.errors import Permanent
from tpu_slices.ports.store import SliceStore

SHOWN = 10


@dataclass(frozen=True, slots=True)
class Books:
    """What the records say of a cluster."""

    cluster: ClusterId
    standing: tuple[SliceRecord, ...]
    """Slices that have a node pool, or may still get the one that was ordered."""
    unreadable: int
    """How many records of slices that are not GONE cannot be read."""
    paused: bool
    configured: bool
    """It has settings."""

    @property
    def may_hold_pools(self) -> bool:
        return bool(self.standing) or self.unreadable > 0


def read(store: SliceStore) -> list[Books]:
    """Return what the records say of every cluster that has settings or slices."""
    known = {*store.clusters(), *store.clusters_with_slices()}
    return [_books(store, cluster) for cluster in sorted(known)]


def _books(store: SliceStore, cluster: ClusterId) -> Books:
    kept = [stored.value for stored in store.kept_slices(cluster)]
    try:
        settings = store.settings(cluster)
        paused, configured = settings is not None and settings.paused is not None, settings is not None
    except Permanent:
        paused, configured = False, True
    return Books(
        cluster,
        tuple(record for record in kept if may_stand(record)),
        unreadable=max(0, store.slice_count(cluster) - len(kept)),
        paused=paused,
        configured=configured,
    )


def may_stand(record: SliceRecord) -> bool:
    """Return whether a node pool of the slice may stand, of any attempt."""
    return record.create_requested_at is not None or bool(record.terminating)


def dropped(books: Books, files: Collection[str], project: str) -> Iterator[Finding]:
    """Yield whether a build may drop the cluster, if none of the `files` is its own any more."""
    if books.cluster in files:
        return
    slices = f"slices --project {project}"
    if books.may_hold_pools:
        yield error(
            f"Cluster {books.cluster} has no file any more, and {_held(books)}: nobody would delete them. Put the file "
            "back, deploy it, and let the slices go: end or suspend their JobSets, or release them.",
            f"{slices} list --cluster {books.cluster}",
            f"{slices} release NAME --cluster {books.cluster}",
        )
    elif books.configured and not books.paused:
        yield error(
            f"Cluster {books.cluster} has no file any more, and a JobSet could still be given a slice in it, which "
            "nobody would delete. Pause it; then this build asks again whether all slices are gone.",
            f"{slices} pause --cluster {books.cluster} --message 'it is dropped'",
        )
    elif books.configured:
        yield warning(
            f"Cluster {books.cluster} is dropped: it is paused, and holds no node pool. What remains is its relay, to "
            f"be deleted with the cluster's credentials, and in Firestore clusters/{books.cluster}, "
            f"accepted/{books.cluster} and pauses/{books.cluster}.",
            "kubectl delete namespace tpu-slice-provisioner",
        )


def held(books: Books, project: str) -> Iterator[Finding]:
    """Yield whether the cluster may hold node pools when all is taken away."""
    if books.may_hold_pools:
        yield error(
            f"Cluster {books.cluster} is not empty: {_held(books)}, and nobody would delete them. End or suspend their "
            "JobSets, or release them, until they are gone.",
            f"slices --project {project} list --cluster {books.cluster}",
        )


def _held(books: Books) -> str:
    names = [f"{record.id} ({record.phase})" for record in books.standing[:SHOWN]]
    more = len(books.standing) - len(names)
    told = [
        f"{len(books.standing)} slices may have node pools: {', '.join(names)}{f' and {more} more' if more else ''}"
        if names
        else "",
        f"{books.unreadable} records of slices cannot be read" if books.unreadable else "",
    ]
    return ", and ".join(text for text in told if text)
