"""Every event that the functions and the relay log: a closed list, from which alerts and metrics are derived.

`docs/log-events.md` describes each event. The same event has the same name wherever it is logged.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Protocol


class LogEvent(StrEnum):
    """`jsonPayload.event` of a log line: a noun and what happened to it."""

    # facts, and the messages that carry them
    FACT_PUBLISHED = "fact.published"
    FACT_RECEIVED = "fact.received"
    FACT_DROPPED = "fact.dropped"  # too large, or the oldest of too many
    FACT_EXPIRED = "fact.expired"  # demand that could not be published in time
    FACT_PUBLISH_FAILED = "fact.publish_failed"  # retried
    MESSAGE_HANDLED = "message.handled"
    MESSAGE_REDELIVERED = "message.redelivered"  # a temporary error: Pub/Sub delivers it again
    MESSAGE_REJECTED = "message.rejected"  # it can never be handled
    MESSAGE_FAILED = "message.failed"  # a bug: see the exception
    SUBSCRIPTION_INTERRUPTED = "subscription.interrupted"
    # decisions and reports
    SLICE_DECIDED = "slice.decided"
    RELEASES_STOPPED = "releases.stopped"  # too many workloads are missing at once: an operator confirms
    HOSTS_LATE = "hosts.late"  # they come back, but have been away for longer than is normal
    CANCELLATION_REFUSED = "cancellation.refused"  # of a creation that nobody needs, for lack of a permission
    WORKLOAD_REPORTED = "workload.reported"
    # what is told outside the cluster
    NOTIFICATION_SENT = "notification.sent"
    NOTIFICATION_DELAYED = "notification.delayed"  # its target may take it later: Pub/Sub delivers it again
    NOTIFICATION_FAILED = "notification.failed"  # it is given up
    # how hosts join
    JOIN_HANDED_ON = "join.handed_on"
    JOIN_DROPPED = "join.dropped"  # its hosts wait for it no more
    JOIN_REFUSED = "join.refused"  # hosts could not be given it: it is asked for again
    # the sweep
    SWEEP_COMPLETED = "sweep.completed"
    SWEEP_FAILED = "sweep.failed"  # one part, or one workload: the others were looked at
    SWEEP_SKIPPED = "sweep.skipped"  # of a cluster without settings
    CLUSTERS_SEARCHED = "clusters.searched"  # for slices of clusters without settings
    CLUSTER_COUNTED = "cluster.counted"  # how many slices and chips a cluster has, and how
    INVENTORY_CHECKED = "inventory.checked"  # the pools that GKE has, compared with the records
    RELAY_SILENT = "relay.silent"  # with each sweep, while no heartbeat arrives
    RELAY_HEARD = "relay.heard"  # again, after a silence
    PODS_REFUSED = "pods.refused"  # with each sweep, and by the relay, while no pod with chips can be created
    POOLS_UNPROVEN = "pools.unproven"  # they have our names, and nothing proves them ours: they are left alone
    ORPHANS_DEFERRED = "orphans.deferred"  # beyond the limit of one inventory check
    # stored documents
    DOCUMENT_UNREADABLE = "document.unreadable"
    SETTINGS_UNREADABLE = "settings.unreadable"  # the last accepted settings stay in force
    SETTINGS_MISSING = "settings.missing"  # of a cluster that has slices
    # the relay's reads from, and writes to, the API server
    WATCH_RELISTED = "watch.relisted"
    WATCH_FAILED = "watch.failed"
    WATCH_CLOSED = "watch.closed"
    OBJECT_UNPARSEABLE = "object.unparseable"
    KIND_NOT_INSTALLED = "kind.not_installed"  # the API server lacks it, or the settings serve no such pods, for now
    TEMPLATE_UNPARSEABLE = "template.unparseable"  # of a workload: no slice can be created for it
    VOLUME_CLAIM_UNKNOWN = "volume_claim.unknown"
    NODE_LABEL_FAILED = "node.label_failed"
    NODE_CLOSE_FAILED = "node.close_failed"  # or could not be opened again
    NODE_GROUP_HOLD_FAILED = "node_group.hold_failed"  # a TPUNodeGroup has no finalizer of ours, and gets no slice yet
    EVICTION_FAILED = "eviction.failed"  # of pods on hosts of a deleted TPUNodeGroup; tried again
    VACANCY_UNCERTAIN = "vacancy.uncertain"  # hosts to be deleted may have a leader that the watch has not shown
    CREDENTIALS_RELOAD_FAILED = "credentials.reload_failed"
    LEGACY_PROVISIONER_DETECTED = "legacy_provisioner.detected"
    LEGACY_PROVISIONER_UNKNOWN = "legacy_provisioner.unknown"
    OWNER_TOLD = "owner.told"  # that its pods request TPU chips, and get no slice
    OWNER_UNKNOWN = "owner.unknown"
    HELD_BACK_TOLD = "held_back.told"  # that a workload changes too often, and waits for that
    HELD_BACK_FAILED = "held_back.failed"
    GANG_OPENED = "gang.opened"  # the slices of a gang stand, and its pods are let go
    GANG_OPEN_FAILED = "gang.open_failed"  # they could not be let go; tried again
    GANG_TOLD = "gang.told"  # that pods are of no gang, or that nothing holds those of one
    GANG_TELL_FAILED = "gang.tell_failed"
    PINNING_UNKNOWN = "pinning.unknown"  # by what pods are kept to the hosts that are meant for them
    GATING_UNKNOWN = "gating.unknown"  # whether the pods of gangs are held
    MIRROR_LISTED = "mirror.listed"
    MIRROR_OFF = "mirror.off"  # its kinds are not installed, or may not be written
    MIRROR_FAILED = "mirror.failed"
    ADMISSION_CHECK_WRITTEN = "admission_check.written"  # what a check of ours says of a workload in Kueue's queues
    ADMISSION_CHECK_FAILED = "admission_check.failed"
    # the relay itself
    PROBES_STARTED = "probes.started"
    PROBES_FAILED = "probes.failed"
    OUTBOX_ABANDONED = "outbox.abandoned"  # at shutdown, with facts that were not published
    THREAD_FAILED = "thread.failed"  # the relay, or the webhook, exits, and Kubernetes restarts it
    # the webhook, where the API server has no such policies
    CERTIFICATE_RENEWED = "certificate.renewed"
    CERTIFICATE_FAILED = "certificate.failed"  # it cannot be renewed, or the API server told of it


MEASURED: Mapping[LogEvent, tuple[str, ...]] = {
    LogEvent.SLICE_DECIDED: ("ready_seconds",),
    LogEvent.CLUSTER_COUNTED: (
        "queued",
        "provisioning",
        "waiting",
        "ready",
        "releasing",
        "refused",
        "blocked",
        "on_hold",
        "warm",
        "spares",
        "chips_bought",
        "chips_held",
        "chips_idle",
        "idle_percent",
        "releasing_seconds",
        "held_seconds",
        "paid_seconds",
    ),
    LogEvent.INVENTORY_CHECKED: ("orphans", "ownerless"),
}
"""The numbers of lines that become metrics."""


class LogLines(Protocol):
    """The log-based metrics of the project, and the lines that they count: only `slices doctor` asks."""

    def counts(self, event: LogEvent, since: datetime) -> bool:
        """Return whether the metric of an event has counted a line that was written since then.

        Temporary: it is not known, as the log cannot be read. Permanent: as whoever asks may not read it, or there is
        no such metric.
        """
