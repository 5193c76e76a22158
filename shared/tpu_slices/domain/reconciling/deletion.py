"""When a pool may be deleted: the one rule that every deletion follows. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum, auto

from tpu_slices.domain.model.clusters import Limits
from tpu_slices.domain.model.questions import ANSWERED_WITHIN
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.vendors import Vendor
from tpu_slices.domain.reconciling.occupancy import Users
from tpu_slices.domain.records.attempts import Attempt
from tpu_slices.domain.records.heartbeats import RelayHeard
from tpu_slices.domain.records.hosts import Hosts

_MOMENTS = timedelta(seconds=30)
"""How long it is believed that no host is there, or open ones are free: a Job may come before the relay tells of it."""


_UNDER_WAY = frozenset({Reason.CLOSING_HOSTS, Reason.DELETION_STARTED, Reason.CREATION_IN_DOUBT})
"""The reasons of a deletion that nobody is in the way of."""


class Step(Enum):
    WAIT = auto()
    CLOSE = auto()
    """Ask the relay to close the hosts to new pods, and then to report who is on them."""
    DELETE = auto()


@dataclass(frozen=True, slots=True)
class Assessment:
    step: Step
    reason: Reason
    message: str
    until: datetime | None = None
    """When it may change although nothing is reported; None: see `requeue_after`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What is known about the use of a pool that is to be deleted."""

    users: Users
    relay: RelayHeard
    namespace: str
    """Of the slice: people there are told of it."""
    forced: bool = False
    """An operator takes it upon themselves that nobody uses it."""
    released: bool = False
    """An operator requested the release: Jobs of its own workload on the hosts do not count as users."""
    stopped: str | None = None
    """Why releases of its workload are stopped."""
    evict_by: datetime | None = None
    """Of a TPUNodeGroup that is over: until when pods are evicted from its hosts, before these go; None: never."""


def assess(pool: Attempt, evidence: Evidence, now: datetime, limits: Limits) -> Assessment:
    """Return whether a pool may be deleted, or what must happen before. The first row that holds counts.

    | what is known                                             | step, reason                                      |
    |-----------------------------------------------------------|---------------------------------------------------|
    | an operator forced the release                            | delete                                            |
    | no heartbeat of the relay for 3 minutes                   | wait: RelaySilent                                 |
    | it is of a TPUNodeGroup that is over, and too many slices | wait: ReleasesStopped                             |
    | lost their workloads at once, which nobody confirmed      |                                                   |
    | - the relay was not asked, or has not answered            | close, and evict pods: ClosingHosts               |
    | - the relay answered: every pod was evicted, or the time  | delete                                            |
    | for it is over; or it is over without an answer           |                                                   |
    | a live Job's leader is on the hosts                       | wait: Occupied                                    |
    | a live Job's leader left less than `restart_grace` ago    | wait: RestartPossible                             |
    | the pool was found, or is in doubt (`spared_until`)       | wait: UsersUnknown                                |
    | the relay was silent since its creation, the records of   | wait: UsersUnknown                                |
    | hosts were not found to agree with what it sees since,    |                                                   |
    | and it has been heard for less than `restart_grace`       |                                                   |
    | too many slices lost their workloads at once, which       | wait: ReleasesStopped                             |
    | nobody confirmed                                          |                                                   |
    | the relay was not asked, or has seen a later one, or      | close: ClosingHosts                               |
    | that a Job was there, which has left since, or too long   |                                                   |
    | ago: `restart_grace` about closed hosts, half a minute    |                                                   |
    | about none, a minute and a half about open ones           |                                                   |
    | the relay was asked and has not answered, or a host is    | wait: ClosingHosts, asked again                   |
    | open, unless it could not be closed although the hosts    |                                                   |
    | have been vacant for `restart_grace`, or an operator      |                                                   |
    | requested the release                                     |                                                   |
    | the relay answered: nobody is on the hosts, and no new    | delete                                            |
    | pod can come                                              |                                                   |
    """
    if evidence.forced:
        return Assessment(Step.DELETE, Reason.DELETION_STARTED, "its release was forced by an operator")
    if evidence.relay.silent(now):
        return Assessment(
            Step.WAIT, Reason.RELAY_SILENT, "the cluster's relay is not heard, so who uses it is not known"
        )
    if evidence.evict_by is not None:
        return _stopped(evidence) or _evicted(pool, evidence.evict_by, now, limits)
    return _in_use(pool, evidence, now, limits) or _stopped(evidence) or _answered(pool, evidence, now, limits)


def _in_use(pool: Attempt, evidence: Evidence, now: datetime, limits: Limits) -> Assessment | None:
    if evidence.users.present:
        told = dict.fromkeys(each.owner.told_in(evidence.namespace) for each in evidence.users.present[:3])
        names = ", ".join(told)
        return Assessment(Step.WAIT, Reason.OCCUPIED, f"{names} runs on its hosts", now + limits.resync_after)
    if evidence.users.restarting:
        last = evidence.users.restarting[-1]
        until = max(each.at for each in evidence.users.restarting) + limits.restart_grace
        until = min(until, now + limits.requeue_after)  # their workloads may end before, and word of it be lost
        user = last.user.owner.told_in(evidence.namespace)
        message = f"{user} ran on its hosts at {last.at:%H:%M:%S} UTC, and may restart there"
        return Assessment(Step.WAIT, Reason.RESTART_POSSIBLE, message, until)
    until = max(pool.spared_until or now, known_after_silence(pool, evidence.relay, limits) or now)
    if now < until:
        message = f"kept until {until:%H:%M:%S} UTC, when it is known who uses it"
        return Assessment(Step.WAIT, Reason.USERS_UNKNOWN, message, until)
    return None


def known_after_silence(pool: Attempt, relay: RelayHeard, limits: Limits) -> datetime | None:
    """Return when it is known who uses a pool that existed while the relay was silent; None: it is known.

    A leader that left during the silence counts as having left when the relay tells of it: once the records agree with
    what the relay sees, nothing is unknown. Its first heartbeat may agree before the relay has told of hosts.
    """
    if relay.since is None or (pool.create_requested_at is not None and pool.create_requested_at >= relay.since):
        return None
    if relay.confirmed_at is not None and relay.confirmed_at > relay.since:
        return None
    return relay.since + limits.restart_grace


def told(pool: Attempt, why: Assessment, vendor: Vendor) -> Assessment:
    """Return the assessment as it is told.

    A deletion that the vendor refused stays refused until it is accepted. That it refused to cancel a creation for lack
    of a permission is told as long as that creation goes on.
    """
    its = f"its {vendor.pool}"
    if why.reason not in _UNDER_WAY:
        return why
    if pool.cancel_refused:
        return replace(why, message=f"{why.message}; {vendor} refused to cancel its creation: {pool.cancel_refused}")
    if pool.refused and why.reason is not Reason.CREATION_IN_DOUBT:
        message = f"{vendor} refused to delete {its}: {pool.refused}"
        return replace(why, reason=Reason.DELETION_REFUSED, message=message)
    return replace(why, message=f"{its} is being deleted") if why.step is Step.DELETE else why


def _stopped(evidence: Evidence) -> Assessment | None:
    return Assessment(Step.WAIT, Reason.RELEASES_STOPPED, evidence.stopped) if evidence.stopped else None


def _answered(pool: Attempt, evidence: Evidence, now: datetime, limits: Limits) -> Assessment:
    hosts, asked = pool.hosts, pool.hosts.closing
    message = _closing(hosts, now)
    answered = asked is not None and hosts.answered == asked.number
    if asked is None or hosts.overtaken or (answered and _counts_no_more(hosts, asked.at, now, limits)):
        return Assessment(Step.CLOSE, Reason.CLOSING_HOSTS, message)
    evicted = evidence.released and bool(hosts.occupants)  # the relay closes no hosts that a Job is on
    if not answered or not (evicted or _closed(hosts, now, limits)):
        step = Step.CLOSE if now - asked.at >= limits.requeue_after else Step.WAIT
        return Assessment(step, Reason.CLOSING_HOSTS, message, now + limits.requeue_after)
    return Assessment(Step.DELETE, Reason.DELETION_STARTED, "nobody uses it")


def _closing(hosts: Hosts, now: datetime) -> str:
    if hosts.ends_by is None:
        return "its hosts are being closed to new pods"
    if now < hosts.ends_by:
        return f"pods that are being deleted on its hosts have until {hosts.ends_by:%H:%M:%S} UTC to end"
    return f"pods on its hosts should have ended by {hosts.ends_by:%H:%M:%S} UTC, and have not: see the kubelets there"


def _evicted(pool: Attempt, evict_by: datetime, now: datetime, limits: Limits) -> Assessment:
    """Return whether the pods of a TPUNodeGroup that is over had the time to go."""
    hosts, asked = pool.hosts, pool.hosts.closing
    long_ago = asked is not None and now - asked.at >= limits.requeue_after
    if asked is not None and (hosts.answered == asked.number or (now >= evict_by and long_ago)):
        return Assessment(Step.DELETE, Reason.DELETION_STARTED, "its pods were evicted")
    again = asked is None or hosts.overtaken or long_ago
    message = f"its hosts are closed, and pods on them evicted, until {evict_by:%H:%M:%S} UTC at the latest"
    step = Step.CLOSE if again else Step.WAIT
    return Assessment(step, Reason.CLOSING_HOSTS, message, now + limits.requeue_after)


def _counts_no_more(hosts: Hosts, asked: datetime, now: datetime, limits: Limits) -> bool:
    """Return whether an answer is too old, or was that a Job was there, which has left since: then none was closed."""
    declined = hosts.vacant_since is not None and hosts.vacant_since > asked
    return now - asked > _lasts(hosts, limits) or (declined and not _closed(hosts, now, limits))


def _lasts(hosts: Hosts, limits: Limits) -> timedelta:
    """Return how long after its question an answer about hosts counts: pods may come to open ones, and later ones."""
    if not hosts.joined:
        return _MOMENTS
    return limits.restart_grace if hosts.closed >= hosts.joined else ANSWERED_WITHIN + _MOMENTS


def _closed(hosts: Hosts, now: datetime, limits: Limits) -> bool:
    """Return whether no new pod can come; hosts that cannot be closed count if nobody came for long."""
    vacant_long = hosts.vacant_since is not None and now - hosts.vacant_since >= limits.restart_grace
    return hosts.closed >= hosts.joined or vacant_long
