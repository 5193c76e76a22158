"""What slices of one JobSet use that fail at once: counted on the world in memory, whose clock only this advances."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

from tests.bench.counted.counters import Counts
from tests.bench.counted.meter import MeteredWorld
from tests.builders import NOW, a_job, a_jobset, a_record, settings
from tpu_slices.domain.model.clusters import Limits
from tpu_slices.domain.model.observations import Creating, Failure, FailureKind
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import SliceId, WorkloadUid
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import WorkloadRecord
from tpu_slices.wire.documents import key

OPERATIONS = 9
"""As many as GKE's own autoscaler has at a time."""
LONG = 900
"""The characters of an error: Compute Engine's longest that are on record."""
STOCKOUT = Failure(FailureKind.STOCKOUT, f"[GCE_STOCKOUT] {'none left in the zone, ' * LONG}"[:LONG])
AN_HOUR = 60


def hosts_lost(slices: int) -> Counts:
    """Return what it takes until a JobSet has slices again all of whose hosts break at once, and whose Jobs restart."""
    world = MeteredWorld(settings(limits=Limits(operations=OPERATIONS)))
    jobset = world.jobset_appears("train", slices=slices)
    _until_served(world, slices)
    before = {record.id for record in world.records.values()}
    with world.used() as used:
        world.all_hosts_break()
        for index in range(slices):
            world.leaves(jobset, index)
        _until_served(world, slices, before)
    return used


def _until_served(world: MeteredWorld, slices: int, before: Collection[SliceId] = ()) -> None:
    """Let minutes pass until so many slices are READY that are not those of before."""
    for _ in range(AN_HOUR + slices):
        if sum(it.reason is Reason.READY and it.id not in before for it in world.records.values()) == slices:
            return
        world.minutes(1)
        for pool in list(world.backend.pools.values()):
            if pool.operation is not None:
                world.operation_ends(pool.name)
    raise AssertionError("not all have their slices")


class OutOfStock:
    """A JobSet of so many claims, whose every creation fails for lack of hosts."""

    def __init__(self, claims: int) -> None:
        self.world = MeteredWorld(settings(limits=Limits(operations=OPERATIONS)))
        jobs = [a_job(uid=WorkloadUid("uid-1"), job_index=index) for index in range(claims)]
        self.records = [self._tried(a_record(job=job, awaited_since=NOW)) for job in jobs]
        self._jobset = a_jobset(owner=jobs[0].owner, demand={record.maker: NOW for record in self.records})
        self.world.store.put(self._jobset, *self.records)
        self.world.minutes(1)

    def _tried(self, record: SliceRecord) -> SliceRecord:
        """Return a claim that failed for lack of hosts, and is tried again within minutes."""
        after = timedelta(seconds=record.job_index % 120)
        again = record.with_claim(retry_at=NOW + after, failures=3, setbacks={Reason.STOCKOUT: 3}, tried=3)
        failed = again.transitioned(NOW, Reason.STOCKOUT, STOCKOUT.message)
        return failed.with_changes(next_reconcile_at=NOW + after)

    @property
    def size(self) -> int:
        """The bytes of the JobSet's document, as Firestore counts them."""
        return self.world.store.size(key(WorkloadRecord, self._jobset.cluster, self._jobset.owner.uid))

    def pass_minutes(self, count: int) -> int:
        """Let minutes pass in which what is tried fails; return how often the JobSet's record was written."""
        world, seen = self.world, len(self.world.store.commits)
        for _ in range(count):
            world.minutes(1)
            for pool in list(world.backend.pools.values()):
                if pool.operation is not None and isinstance(pool.seen, Creating):
                    world.creation_fails(pool.name, STOCKOUT)
                elif pool.operation is not None:
                    world.operation_ends(pool.name)
        commits = world.store.commits[seen:]
        return sum(isinstance(change.after, WorkloadRecord) for changes in commits for change in changes)
