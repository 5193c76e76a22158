"""What every `SliceStore` sums up, to compare it with what the relay sees: the fake, and the one on the emulator."""

from __future__ import annotations

from tests.builders import CLUSTER, NOW, a_job, a_jobset, a_record, an_occupant, some_hosts
from tests.contracts.stores import ELSEWHERE, Bench, slices
from tests.domain.cases import in_use
from tpu_slices.domain.model.facts import Family, WorkloadState
from tpu_slices.domain.model.slices import ClaimId, ClusterId, WorkloadUid
from tpu_slices.domain.records.mirror import mirror_digest
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import WorkloadRecord
from tpu_slices.domain.reporting.reports import report
from tpu_slices.domain.reporting.waits import QueueState


def test_the_demand_of_workloads_that_are_active_is_read_by_digests_and_added_up(bench: Bench) -> None:
    first, second = ClaimId("tpu-a-0-aaaaaaaaaaaaa"), ClaimId("tpu-b-0-aaaaaaaaaaaaa")
    waiting = [
        a_jobset(uid=WorkloadUid("a"), demand={first: NOW}),
        a_jobset(uid=WorkloadUid("b"), demand={second: NOW}),
    ]
    bench.create(*waiting, a_jobset(uid=WorkloadUid("served"), demand={first: None}))
    bench.create(a_jobset(uid=WorkloadUid("suspended"), demand={first: NOW}, state=WorkloadState.SUSPENDED))
    bench.create(a_jobset(uid=WorkloadUid("elsewhere"), demand={first: NOW}, cluster=ELSEWHERE))

    assert bench.store.demand_digests(CLUSTER) == {each.owner.uid: each.demand_digest for each in waiting}
    assert bench.store.digests(CLUSTER)[Family.DEMAND] == sum(each.demand_digest for each in waiting) != 0


def test_the_standings_of_workloads_that_have_not_ended_are_summed_up_by_cluster(bench: Bench) -> None:
    live = [a_jobset(uid=WorkloadUid("a")), a_jobset(uid=WorkloadUid("b"), state=WorkloadState.SUSPENDED)]
    bench.create(*live, a_jobset(uid=WorkloadUid("c"), state=WorkloadState.COMPLETED), a_jobset(cluster=ELSEWHERE))
    bench.create(*slices(1))

    summed = bench.store.digests(CLUSTER)[Family.WORKLOADS]
    assert summed == sum(each.standing for each in live) != 0
    assert summed == sum(each.digest for _, each in bench.store.live_standings(CLUSTER))


def test_the_digests_of_hosts_are_summed_up_by_cluster(bench: Bench) -> None:
    lent = a_record(hosts=some_hosts(occupants=(an_occupant("guest"),)), create_requested_at=NOW)
    let_go = in_use(an_occupant(), attempt=2)
    bench.create(lent, let_go, a_record(job=a_job(job_index=2)))
    bench.create(a_record(job=a_job(cluster=ELSEWHERE), hosts=some_hosts(), create_requested_at=NOW))

    assert bench.store.digests(CLUSTER)[Family.HOSTS] == lent.hosts_digest + let_go.hosts_digest != 0


def test_a_cluster_of_which_nothing_is_on_record_has_a_digest_of_zero_of_each_family(bench: Bench) -> None:
    assert bench.store.digests(ClusterId("empty")) == dict.fromkeys(Family, 0)
    assert bench.store.mirror_digest(ClusterId("empty")) == 0


def test_what_the_mirror_shows_of_slices_and_workloads_is_summed_up_by_cluster(bench: Bench) -> None:
    told = report(a_jobset(), [], QueueState(), NOW)
    shown: list[SliceRecord | WorkloadRecord] = [
        a_jobset(uid=WorkloadUid("a"), report=told),
        a_record(),
        in_use(an_occupant(), attempt=2),
    ]
    bench.create(*shown, a_jobset(uid=WorkloadUid("b"), report=told, state=WorkloadState.COMPLETED))
    bench.create(a_jobset(uid=WorkloadUid("c")), a_record(job=a_job(cluster=ELSEWHERE)))

    assert bench.store.mirror_digest(CLUSTER) == sum(map(mirror_digest, shown)) != 0
