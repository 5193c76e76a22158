"""What `slices doctor` finds: whether each part did its share of a round trip; if not, what to look at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from tpu_slices.domain.model.facts import Pinning
from tpu_slices.domain.model.gangs import Gangs
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import ClaimId, ClusterId, WorkloadUid
from tpu_slices.domain.records.heartbeats import RelayHeartbeat, RoundTrip, silent_since
from tpu_slices.domain.records.limiters import CapacityPool
from tpu_slices.domain.records.queues import FIRST_QUEUES
from tpu_slices.domain.records.workloads import ReportQueue
from tpu_slices.domain.reporting.gating import as_set, not_as_set
from tpu_slices.domain.reporting.reason_texts import PODS_REFUSED, relay_silence
from tpu_slices.ports import messaging
from tpu_slices.ports.log_events import LogEvent
from tpu_slices.ports.store import SliceStore
from tpu_slices.wire.topics import Topic
from tpu_slices_cli.text import Step

_AGAIN = Step("`slices doctor` again: what comes later may have failed for what came before.")
_CONFIGURE = Step(
    "Write infra/clusters/PROJECT/CLUSTER.yaml, and submit the build: it configures and serves the cluster."
)
_FIRST = Step(
    "Ask for a first slice: what it would be and cost, then the JobSet, then its way to READY",
    ("slices plan -f examples/v6e-one-chip.yaml", "kubectl apply -f examples/v6e-one-chip.yaml", "slices list --watch"),
)
_LOOK = Step("Nothing has to be done. `slices list` has the slices, `slices explain WORKLOAD` why one waits.")

MAKE_TOPICS = "Write infra/clusters/PROJECT/{cluster}.yaml, if it is not there, and submit the build, which makes them."
LINES_WITHIN = timedelta(minutes=10)
"""A line that was written within this time tells that lines are counted: the sweep writes one a minute."""
CLOCKS_AGREE = timedelta(seconds=10)
"""By how much clocks may differ: far less than any time limit of the provisioner."""


@dataclass(frozen=True, slots=True)
class Finding:
    is_well: bool
    message: str
    remedies: tuple[str, ...] = ()
    """Commands that show more, or mend it."""


def well(message: str) -> Finding:
    return Finding(is_well=True, message=message)


def wrong(message: str, *remedies: str) -> Finding:
    return Finding(is_well=False, message=message, remedies=remedies)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What is known of a cluster some time after it was asked."""

    project: str
    cluster: ClusterId
    asked_at: datetime
    now: datetime
    heartbeat: RelayHeartbeat
    gangs: Gangs = Gangs.NONE
    """By the cluster's settings."""

    @property
    def swept(self) -> bool:
        """Whether the sweep did what it was asked to."""
        return self.heartbeat.next_inventory_check_at is not None

    @property
    def trip(self) -> RoundTrip | None:
        """The round trip that began then, or a later one; None: its echo has not been received."""
        trip = self.heartbeat.round_trip
        return trip if trip is not None and trip.asked_at >= self.asked_at else None


def examine(seen: Seen) -> list[Finding]:
    """Return what is found of a cluster: the relay with receive, reconcile, the sweep, and, once known, the clocks."""
    return [_relay(seen), _reconcile(seen), *_updates(seen), _sweep(seen), *_clocks(seen), *_pinned(seen), *_held(seen)]


def queries(store: SliceStore, cluster: ClusterId, now: datetime) -> Mapping[str, Callable[[], object]]:
    """Return every query that the functions and this command make, ready to be made for a cluster."""
    queue, nobody = ReportQueue(cluster, "default", first=True), WorkloadUid("none")
    return {
        "clusters": store.clusters,
        "clusters_with_slices": store.clusters_with_slices,
        "slice_count": lambda: store.slice_count(cluster),
        "changed_workloads": lambda: store.changed_workloads(cluster, now, 1),
        "having": lambda: store.having(cluster, [ClaimId("tpu-none-0-aaaaaaaaaaaaa")]),
        "digests": lambda: store.digests(cluster),
        "mirror_digest": lambda: store.mirror_digest(cluster),
        "demand_digests": lambda: store.demand_digests(cluster),
        "report_queues": lambda: store.report_queues(cluster, now),
        "due_reports": lambda: store.due_reports(queue, now, 1),
        "queued_slices": lambda: store.queued_slices(cluster, 1),
        "settings_at": lambda: store.settings_at(""),
        **_in_turn(store, cluster, now),
        **_matching(store, cluster),
        "live_workloads": lambda: next(store.live_workloads(cluster), None),
        "live_standings": lambda: next(store.live_standings(cluster), None),
        "kept_slices": lambda: next(store.kept_slices(cluster), None),
        "every_slice": lambda: next(store.every_slice(cluster), None),
        "slots": lambda: store.slots(cluster),
        "chips_bought": lambda: store.chips_bought(cluster),
        "chips_bought of a namespace": lambda: store.chips_bought(cluster, "default"),
        "chips_held": lambda: store.chips_held(cluster),
        "phase_count": lambda: store.phase_count(cluster, Phase.READY),
        "reason_count": lambda: store.reason_count(cluster, [Reason.HELD]),
        "oldest_since": lambda: store.oldest_since(cluster, [Reason.HELD]),
        "for_reasons": lambda: store.for_reasons(cluster, [Reason.WARM], 1),
        "paid_longest": lambda: store.paid_longest(cluster),
        "hearing": lambda: store.hearing(cluster, nobody, 1),
        "alike": lambda: next(store.alike(cluster, nobody, 1), None),
        "told_alike": lambda: store.told_alike(cluster, nobody, (Phase.READY, Reason.READY), 1),
        "awaiting_chips": lambda: store.awaiting_chips(cluster, "", 1),
        "unconfirmed_ends": lambda: store.unconfirmed_ends(cluster, now),
        "unconfirmed_ends of a namespace": lambda: store.unconfirmed_ends(cluster, now, "default"),
        "ready_count": lambda: store.ready_count(cluster, 1),
        "ready_count of a namespace": lambda: store.ready_count(cluster, 1, "default"),
    }


def _matching(store: SliceStore, cluster: ClusterId) -> Mapping[str, Callable[[], object]]:
    """Return the queries by which claims and slices find each other."""
    return {
        "wanting": lambda: store.wanting(f"{cluster} default v1", 1),
        "wanting of any namespace": lambda: store.wanting(f"{cluster} v1", 1, of_any=True),
        "offered": lambda: store.offered(f"{cluster} default v1", 1),
        "offered to any namespace": lambda: store.offered(f"{cluster} v1", 1, to_any=True),
    }


def _in_turn(store: SliceStore, cluster: ClusterId, now: datetime) -> Mapping[str, Callable[[], object]]:
    """Return the queries by which namespaces take turns."""
    pool = CapacityPool("zone/accelerator/capacity")
    return {
        "hosts_reserved": lambda: store.hosts_reserved(cluster, pool),
        "users_of_reservation": lambda: store.users_of_reservation(cluster, pool, 1),
        "due_slices": lambda: store.due_slices(cluster, now, 1),
        "due_slices of a namespace": lambda: store.due_slices(cluster, now, 1, "default"),
        "due_namespaces": lambda: store.due_namespaces(cluster, now, 1),
        "awaits_slot": lambda: store.awaits_slot(cluster),
        "deletions_awaiting_slot": lambda: store.deletions_awaiting_slot(cluster, 1),
        "creations_awaiting_slot": lambda: store.creations_awaiting_slot(cluster, *FIRST_QUEUES, 1),
        "creations_in_queue": lambda: store.creations_in_queue(cluster, "default", "", 1),
        "creations_in_pool": lambda: store.creations_in_pool(cluster, pool, 1),
    }


def records(made: int, failed: Mapping[str, str]) -> Finding:
    """Return what the queries say of the records: how many were made, and the errors of those that failed."""
    if not failed:
        return well(f"Firestore answered {made} queries: records can be read, and their indexes are there.")
    listed = "; ".join(f"{name}: {error}" for name, error in failed.items())
    return wrong(
        f"{len(failed)} of {made} queries failed. An index takes minutes after it was created; one that is missing is "
        f"created by the build. {listed}",
        "gcloud firestore indexes composite list",
    )


def topics(cluster: ClusterId, missing: Sequence[str]) -> Finding:
    """Return what of a cluster's topics and subscriptions is missing."""
    if not missing:
        return well("Its topics are there, and a subscription to each.")
    return wrong(
        f"Nobody serves it. Missing: {', '.join(missing)}. What they carry is lost, and the build makes them.",
        MAKE_TOPICS.format(cluster=cluster),
    )


def schedule(seen: Seen, state: str | None) -> Finding:
    """Return what Cloud Scheduler says of the ticks of a cluster that was not swept: the state of its job."""
    job = Topic.TICKS.of(seen.cluster)
    match state:
        case None:
            return wrong(f"There is no job {job} in Cloud Scheduler.", MAKE_TOPICS.format(cluster=seen.cluster))
        case messaging.RUNS:
            return well(f"The job {job} of Cloud Scheduler is enabled.")
        case _:
            how = f"gcloud scheduler jobs resume {job} --location REGION --project {seen.project}"
            return wrong(f"The job {job} of Cloud Scheduler is {state}.", how)


def alerts(project: str, *, counted: bool | None, why: str = "") -> Finding:
    """Return whether alerts on lines can come: whether a sweep's line was counted; None: `why` it is not known."""
    match counted:
        case True:
            return well("The sweep's lines are counted, so that alerts on lines of the functions can come.")
        case False:
            return wrong(
                f"No line {LogEvent.SWEEP_COMPLETED} was counted in {LINES_WITHIN.seconds // 60} minutes: the sweep "
                "does not run, or its lines have another form or resource than the metrics expect, so that no alert on "
                "lines comes.",
                f"gcloud logging read 'resource.labels.service_name=\"tpu-slice-sweep\"' --project {project} "
                "--freshness 10m --limit 5 --format json",
            )
        case None:
            return well(f"Whether alerts on lines can come is not known: {why}")


def report(subject: str, findings: Sequence[Finding]) -> Iterator[str]:
    """Yield what was found of a subject, such as a cluster, as lines."""
    yield subject
    for finding in findings:
        yield f"  {'ok' if finding.is_well else 'FAILED':<6}  {finding.message}"
        yield from (f"          {remedy}" for remedy in finding.remedies)


def all_well(found: Mapping[str, Sequence[Finding]]) -> bool:
    """Return whether nothing is wrong with any subject."""
    return all(finding.is_well for findings in found.values() for finding in findings)


def next_steps(found: Mapping[str, Sequence[Finding]], slices: int | None) -> list[Step]:
    """Return what a person does next; `slices`: how many there are, None: no cluster is configured.

    | found         | next                                                                       |
    |---------------|----------------------------------------------------------------------------|
    | a failure     | the commands for each subject, in the order of the round trip; this again  |
    | no cluster    | the settings of one                                                        |
    | all well      | the first slice; or those that there are                                   |
    """
    if not all_well(found):
        findings = ((about, finding) for about, of_subject in found.items() for finding in of_subject)
        mends = [Step(finding.message, finding.remedies, (about,)) for about, finding in findings if finding.remedies]
        return [*mends, _AGAIN]
    if slices is None:
        return [_CONFIGURE]
    return [_LOOK] if slices else [_FIRST]


def _relay(seen: Seen) -> Finding:
    trip = seen.trip
    if trip is not None:
        return well(f"The relay answered, and receive recorded it, after {_after(seen, trip.received_at)}.")
    relay = "kubectl logs deployment/relay --namespace tpu-slice-provisioner --tail 50"
    silent = silent_since(seen.heartbeat, seen.now)
    if silent is not None:
        return wrong(relay_silence(silent, seen.now), relay, _warnings(seen, "receive"))
    if seen.heartbeat.received_at is None:
        return wrong("The relay was never heard.", relay, _warnings(seen, "receive"))
    subscription, ago = (
        Topic.QUESTIONS.subscription(seen.cluster),
        (seen.now - seen.heartbeat.received_at).total_seconds(),
    )
    return wrong(
        f"The relay, heard {ago:.0f} s ago, does not answer: it has ended, cannot pull {subscription}, or is of an "
        "earlier release.",
        relay,
        f"gcloud pubsub subscriptions get-iam-policy {subscription} --project {seen.project}",
    )


def _reconcile(seen: Seen) -> Finding:
    trip = seen.trip
    if trip is None:
        return wrong("Reconcile was not asked: the relay's answer comes first.")
    if trip.reconciled_at is None:
        return wrong("Reconcile has not recorded the answer.", _warnings(seen, "reconcile"))
    return well(f"Reconcile recorded it after {_after(seen, trip.reconciled_at)}.")


def _updates(seen: Seen) -> Iterator[Finding]:
    """Yield whether what becomes Events comes to the relay; nothing if the relay does not answer at all."""
    tried = seen.heartbeat.updates_tried_at
    if tried is not None and tried >= seen.asked_at:
        yield well("Updates come to the relay, which makes Events of them.")
        return
    if seen.trip is None:
        return
    subscription = Topic.UPDATES.subscription(seen.cluster)
    about = f"{subscription} --project {seen.project}"
    yield wrong(
        f"No update came to the relay, so there are no Events: it cannot pull {subscription}, which may be of another "
        "topic, or is of an earlier release.",
        "kubectl logs deployment/relay --namespace tpu-slice-provisioner --tail 50",
        f"gcloud pubsub subscriptions describe {about}",
        f"gcloud pubsub subscriptions get-iam-policy {about}",
    )


def _sweep(seen: Seen) -> Finding:
    if seen.swept:
        return well("The sweep ran, and listed the cluster's slices in Google Cloud.")
    return wrong(
        "The sweep, which runs each minute, has not compared the records with Google Cloud since it was asked to.",
        _warnings(seen, "sweep"),
    )


def _clocks(seen: Seen) -> Iterator[Finding]:
    trip = seen.trip
    if trip is None:
        return
    clocks = {"the relay": trip.answered_at, "receive": trip.received_at, "reconcile": trip.reconciled_at}
    off = {name: _off(seen, at) for name, at in clocks.items() if at is not None}
    far_off = {name: by for name, by in off.items() if by > CLOCKS_AGREE}
    if not far_off:
        yield well(f"All clocks agree within {CLOCKS_AGREE.seconds} s.")
        return
    listed = ", ".join(f"that of {name} by {by.total_seconds():.0f} s" for name, by in far_off.items())
    yield wrong(f"Clocks differ from this computer's: {listed}. Ages and time limits are computed from them.")


def _pinned(seen: Seen) -> Iterator[Finding]:
    """Yield whether pods are pinned to slices: a cluster whose pods are not is well, and has to know it."""
    if seen.trip is None:
        return
    match seen.heartbeat.pinning:
        case Pinning.POLICY:
            yield well("Pods are pinned to their slices, by the admission policy tpu-slice-provisioner.")
        case Pinning.WEBHOOK:
            yield well("Pods are pinned to their slices, by the webhook: this API server has no admission policies.")
        case Pinning.NOTHING:
            yield well(
                "Pods are not pinned: neither the admission policy (infra/kubernetes/admission.yaml) nor the webhook "
                "(infra/kubernetes/webhook) is in force. Jobs of several hosts are refused (PodsNotPinned) unless "
                "exclusive topology keeps their pods together, and any pod with chips may take free hosts of a slice."
            )
        case Pinning.REFUSED:
            yield wrong(
                PODS_REFUSED,
                "kubectl get pods --namespace tpu-slice-provisioner --selector app.kubernetes.io/name=webhook",
                "kubectl logs deployment/webhook --namespace tpu-slice-provisioner --tail 50",
                "kubectl get mutatingwebhookconfiguration tpu-slice-provisioner --output yaml",
            )
        case None:
            yield well("Whether pods are pinned to slices is not known: the relay could not try it.")


def _held(seen: Seen) -> Iterator[Finding]:
    """Yield whether the pods of gangs are held, as the settings say."""
    if seen.trip is None or seen.heartbeat.pinning is Pinning.REFUSED:
        return
    gating = seen.heartbeat.gating
    if gating is None:
        yield well("Whether the pods of gangs are held is not known: the relay could not try it.")
    elif told := as_set(seen.gangs, gating):
        yield well(told)
    else:
        yield wrong(
            f"{not_as_set(seen.gangs, gating)}. Submit the build: it applies the admission policies, or the webhook, "
            "with the settings of the cluster.",
            "kubectl get mutatingadmissionpolicybindings",
            "kubectl get mutatingadmissionpolicy tpu-slice-provisioner-gangs --output yaml",
            "kubectl get deployment webhook --namespace tpu-slice-provisioner --output yaml",
        )


def _off(seen: Seen, at: datetime) -> timedelta:
    """Return by how much a clock is wrong at least, if something happened between the question and now."""
    return max(seen.asked_at - at, at - seen.now, timedelta())


def _after(seen: Seen, at: datetime) -> str:
    return f"{max(0.0, (at - seen.asked_at).total_seconds()):.1f} s"


def _warnings(seen: Seen, function: str) -> str:
    """Return the command that shows what a function warned of lately."""
    wanted = f'resource.labels.service_name="tpu-slice-{function}" AND severity>=WARNING'
    return f"gcloud logging read '{wanted}' --project {seen.project} --freshness 1h --limit 20"
