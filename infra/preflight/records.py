"""What the records say of clusters that a build drops, or takes away: whether node pools may still stand in them."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from infra.preflight.findings import Finding, error
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.domain.records.slices import SliceRecord
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

    @property
    def may_hold_pools(self) -> bool:
        return bool(self.standing) or self.unreadable > 0


def read(store: SliceStore) -> list[Books]:
    """Return what the records say of every cluster that has settings or slices."""
    known = {*store.clusters(), *store.clusters_with_slices()}
    return [_books(store, cluster) for cluster in sorted(known)]


def _books(store: SliceStore, cluster: ClusterId) -> Books:
    kept = [stored.value for stored in store.kept_slices(cluster)]
    standing = tuple(record for record in kept if may_stand(record))
    return Books(cluster, standing, unreadable=max(0, store.slice_count(cluster) - len(kept)))


def may_stand(record: SliceRecord) -> bool:
    """Return whether a node pool of the slice may stand, of any attempt."""
    return record.current.create_requested_at is not None


def dropped(books: Books, files: Collection[str], project: str) -> Iterator[Finding]:
    """Yield whether a build may drop the cluster, if none of the `files` is its own any more."""
    if books.cluster in files:
        return
    why = _held(books) if books.may_hold_pools else "a JobSet could still be given a slice in it"
    yield error(
        f"Cluster {books.cluster} has no file any more, but is not retired: {why}, and nobody would delete it. Retire "
        "it, which also ends what runs on its slices; or put the file back.",
        f"slices --project {project} retire {books.cluster} --message 'it is dropped'",
    )


def held(books: Books, project: str) -> Iterator[Finding]:
    """Yield whether the cluster may hold node pools when all is taken away."""
    if books.may_hold_pools:
        yield error(
            f"Cluster {books.cluster} is not empty: {_held(books)}, and nobody would delete them. End or suspend their "
            "JobSets until they are gone; or retire it, which also ends what runs on its slices.",
            f"slices --project {project} list --cluster {books.cluster}",
            f"slices --project {project} retire {books.cluster} --message 'the provisioner is removed'",
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
