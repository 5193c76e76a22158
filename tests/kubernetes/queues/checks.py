"""The relay's admission check in Kueue's own queues: watched and written as the relay does, by what a test says."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from relay import translate
from relay.connection import Connection
from relay.health import Health
from relay.kueue.calls import KueueCalls
from relay.kueue.findings import Progress
from relay.kueue.keeper import CheckKeeper
from relay.kueue.objects import CheckState
from relay.kueue.reservations import Reservation
from relay.node_groups.calls import SelfManagedCluster
from relay.objects import Workload
from relay.watch import Patience, Watch
from tests.cluster.asking import done, path
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.queues.queued import API, Json, Team
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.gangs import ADMISSION_CHECKS
from tpu_slices.domain.model.reasons import Phase, Reason, ReportReason
from tpu_slices.domain.model.slices import OwnerKind, WorkloadUid
from tpu_slices.domain.records.mirror import Mirrored, MirrorKind, WorkloadShown
from tpu_slices.domain.records.workloads import Report, Wait
from tpu_slices.ports.publisher import AnyMirror, MirrorChanged
from tpu_slices.wire.readers import READERS
from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.testing.waiting import beside, until

CHECK = "tpu-slices"


@dataclass
class Slices:
    """Which slices stand, as a test says, by the name of the JobSet; and for whom quota was reserved."""

    cluster: Cluster
    stand: set[str] = field(default_factory=set)
    reserved: Mapping[WorkloadUid, Reservation] = field(default_factory=dict)
    ever: list[Mapping[WorkloadUid, Reservation]] = field(default_factory=list)
    tell: Callable[[AnyMirror], None] = lambda _: None

    def reserve(self, reservations: Mapping[WorkloadUid, Reservation]) -> None:
        self.reserved = reservations
        self.ever.append(reservations)

    def progress(self, workloads: Collection[WorkloadUid]) -> Mapping[WorkloadUid, Progress]:
        return {uid: self._progress(each) for each in self._known() if (uid := each.ref.owner.uid) in workloads}

    def told(self, name: str, reason: Reason) -> None:
        """Have the functions say why the slices of a JobSet are not made."""
        owner = next(each.ref.owner for each in self._known() if each.name.name == name)
        wait = Wait(
            phase=reason.phase or Phase.WAITING,
            reason=reason,
            jobs=(f"{name}-workers-0",),
            count=1,
            message=f"{reason}, they say.",
            since=now(),
            retry_at=None,
            remedy="",
        )
        report = Report(reason=ReportReason.WAITING, message=reason, requested=1, ready=0, waits=(wait,), since=now())
        shown = WorkloadShown(owner=owner, state=WorkloadState.ACTIVE, report=report)
        one = Mirrored(
            kind=MirrorKind.WORKLOAD, namespace="default", name=name, uid=owner.uid, digest=1, workload=shown
        )
        self.tell(MirrorChanged(objects=(one,), at=now()))

    def _known(self) -> list[Workload]:
        read = (translate.workload(READERS[OwnerKind.JOBSET], each) for each in self._jobsets())
        return [each for each in read if each is not None]

    def _jobsets(self) -> list[Json]:
        found: list[Json] = self.cluster.api.read(path("jobsets", "default"))["items"]
        return found

    def _progress(self, workload: Workload) -> Progress:
        of = int(workload.served and bool(workload.requests))
        return Progress(workload=workload, stand=int(workload.name.name in self.stand), of=of)


def now() -> datetime:
    return datetime.now(UTC)


@contextmanager
def answered(cluster: Cluster, slices: Slices) -> Iterator[CheckKeeper]:
    """Answer the check within the block."""
    with ExitStack() as stack, Connection({"KUBECONFIG": str(cluster.plane.kubeconfig)}) as connection:
        calls = KueueCalls(connection, SelfManagedCluster(connection))
        keeper = CheckKeeper(calls, slices, now, Health(now))
        slices.tell = keeper.tell
        for source in calls.sources(keeper.is_asked):
            watch = Watch(source, keeper.put, Patience(PATIENCE_SECONDS, _seconds), random.Random(1))
            stack.enter_context(beside(watch.run, watch.stop))
        stack.enter_context(beside(keeper.run, keeper.stop))
        yield keeper


def _seconds() -> float:
    return now().timestamp()


def the_check(team: Team, jobset: str) -> Json:
    """Return what a JobSet's Workload says of the check; empty while it lists none."""
    checks = team.workload(jobset).get("status", {}).get("admissionChecks", [])
    return next((each for each in checks if each["name"] == CHECK), {})


def says(team: Team, jobset: str, state: CheckState, text: str = "") -> None:
    def told() -> bool:
        found = the_check(team, jobset)
        return found.get("state") == state and text in found.get("message", "")

    until(told, lambda: f"{jobset}: {state} {text}, not {team.workload(jobset)}")


def an_admission_check(name: str = CHECK, controller: str = ADMISSION_CHECKS) -> Json:
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "AdmissionCheck",
        "metadata": {"name": name},
        "spec": {"controllerName": controller},
    }


def stop(team: Team, policy: str, queue: str = "research") -> None:
    """Set the stopPolicy of a ClusterQueue."""
    done(team.cluster.api.patch(f"{API}/clusterqueues/{queue}", {"spec": {"stopPolicy": policy}}))
