"""The port `SliceStore` on Firestore.

Every write of a record is guarded by the update time of what was read. There are no read-write transactions: their
locks make other clients wait for 2 seconds, and for 60 if a client dies (measured on the emulator).
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, TypeVar

import structlog
from google.api_core.exceptions import AlreadyExists, FailedPrecondition, NotFound
from google.auth.exceptions import GoogleAuthError
from google.cloud.firestore import Client, DocumentReference, WriteBatch

from tpu_slices.adapters.firestore_documents import (
    Snapshot,
    classified_errors,
    fields_of,
    revision_of,
    stored,
)
from tpu_slices.adapters.firestore_queries import (
    AWAITING_CHIPS,
    BOUGHT_IN_CLUSTER,
    BOUGHT_IN_NAMESPACE,
    CHANGED_SLICES,
    CLAIMED,
    CLUSTERS,
    CLUSTERS_AT,
    CLUSTERS_WITH_SLICES,
    DEMAND,
    EVERY_SLICE,
    HEARING,
    HELD_IN_CLUSTER,
    HOSTS_IN_CLUSTER,
    KEPT_SLICES,
    LIVE_WORKLOADS,
    NAMESPACE_IN_PHASE,
    OFFERED,
    OFFERED_TO_ANY,
    PAID_SLICES,
    SLICES_FOR_REASONS,
    SLICES_IN_PHASE,
    SLICES_SHOWN,
    SLOTS,
    TOLD_ALIKE,
    TOLD_IN_CLUSTER,
    TOLD_OF_WORKLOAD,
    UNCONFIRMED_IN_CLUSTER,
    UNCONFIRMED_IN_NAMESPACE,
    WANTING,
    WANTING_OF_ANY,
    WORKLOADS_SHOWN,
)
from tpu_slices.adapters.firestore_reads import by_claim, named, one
from tpu_slices.adapters.firestore_turns import FirestoreTurns
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import Family, WorkloadState
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import ClaimId, ClusterId, SliceId, WorkloadUid
from tpu_slices.domain.records.brakes import Brake
from tpu_slices.domain.records.heartbeats import RelayHeartbeat
from tpu_slices.domain.records.limiters import Budget, ConcurrencyLimiter, Slot
from tpu_slices.domain.records.matching import news_of, tells, told_alike, told_of_all
from tpu_slices.domain.records.queues import chips_line
from tpu_slices.domain.records.rejected import RejectedMessage
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.standings import Standing
from tpu_slices.domain.records.workloads import WorkloadRecord
from tpu_slices.ports.errors import Permanent, StaleRecord, Temporary
from tpu_slices.ports.log_events import LogEvent
from tpu_slices.ports.store import CLAIMS_AT_ONCE, Alike, Change, Found, Names, Record, Revision, Stored, Together
from tpu_slices.wire.cluster_settings import accepted_key, decode_settings, pause_key, settings_key, with_pause
from tpu_slices.wire.documents import (
    DEMAND_DIGEST,
    PAID_SINCE,
    STANDING,
    Key,
    encode,
    encode_change,
    encode_rejection,
    key,
    key_of,
    place_of,
    rejection_key,
)

R = TypeVar("R", bound=Record)
N = TypeVar("N", bound=str)

_LIVE = tuple(state.value for state in WorkloadState if not state.ended)
_KEPT = tuple(phase.value for phase in Phase if phase is not Phase.GONE)

log = structlog.get_logger()

NAMES = 10
"""How many more documents a page has if only their names are read."""
_LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def connect(project: str) -> Client:
    """Return a client; with FIRESTORE_EMULATOR_HOST it uses the emulator. Temporary: there are no credentials."""
    try:
        return Client(project=project)
    except GoogleAuthError as error:
        raise Temporary(f"Firestore: {error}") from error


class FirestoreStore(FirestoreTurns):
    """The port `SliceStore` on Firestore in native mode."""

    def __init__(self, client: Client, **limits: Any) -> None:
        super().__init__(client, **limits)
        self._meanwhile = ThreadPoolExecutor(thread_name_prefix="firestore")
        self._settings: dict[str, tuple[Revision, ClusterSettings]] = {}
        """By document, with the revision that was decoded."""

    def together(self, cluster: ClusterId, names: Names) -> Together:
        heartbeat, limiter = RelayHeartbeat.of(cluster), ConcurrencyLimiter.of(cluster, _LONG_AGO)
        places = [
            *((settings_key(cluster), pause_key(cluster)) if names.settings else ()),
            *(key(SliceRecord, cluster, name) for name in names.slices),
            *(key(WorkloadRecord, cluster, name) for name in names.workloads),
            *((key_of(heartbeat),) if names.heartbeat else ()),
            *((key_of(limiter),) if names.limiter else ()),
            *((key(Brake, cluster),) if names.brake else ()),
        ]
        slots = self._meanwhile.submit(self.slots, cluster) if names.slots else None
        asked = names.claims and not names.claims_last
        having = self._meanwhile.submit(self.having, cluster, names.claims) if asked else None
        found = self._get(places)
        return Together(
            settings=self._settings_of(cluster, found),
            slices=named(found, SliceRecord, cluster, names.slices),
            having=having.result() if having else self.having(cluster, names.claims),
            workloads=named(found, WorkloadRecord, cluster, names.workloads),
            heartbeat=one(found, heartbeat),
            limiter=one(found, limiter),
            brake=stored(Brake, brake) if (brake := found.get(key(Brake, cluster))) else None,
            slots=slots.result() if slots else None,
        )

    def settings(self, cluster: ClusterId) -> ClusterSettings | None:
        return self.together(cluster, Names(settings=True)).settings

    def settings_at(self, path: str) -> tuple[ClusterSettings, ...]:
        found = self._read(self._asked(CLUSTERS_AT, path).stream)
        pauses = self._get([pause_key(ClusterId(each.id)) for each in found])
        places = {settings_key(ClusterId(each.id)): each for each in found} | pauses
        return tuple(s for each in found if (s := self._settings_of(ClusterId(each.id), places)) is not None)

    def _settings_of(self, cluster: ClusterId, found: Mapping[Key, Snapshot]) -> ClusterSettings | None:
        written, pause = found.get(settings_key(cluster)), found.get(pause_key(cluster))
        if written is None:
            return None
        return with_pause(self._settings_in(cluster, written), fields_of(pause) if pause else None)

    def _settings_in(self, cluster: ClusterId, written: Snapshot) -> ClusterSettings:
        """Return the written settings or, if they are invalid, the last accepted ones."""
        try:
            return self._decoded(cluster, written)
        except Permanent as problem:
            place = accepted_key(cluster)
            accepted = self._get([place]).get(place)
            if accepted is None:
                raise
            log.error(LogEvent.SETTINGS_UNREADABLE, cluster=cluster, error=str(problem))  # noqa: TRY400 - not a bug
            return self._decoded(cluster, accepted)

    def _decoded(self, cluster: ClusterId, document: Snapshot) -> ClusterSettings:
        """Return the settings of a document; those that were decoded last are kept, as each event reads them."""
        place, revision = document.reference.path, revision_of(document)
        known = self._settings.get(place)
        if known is None or known[0] != revision:
            known = self._settings[place] = (revision, decode_settings(cluster, fields_of(document), revision))
        return known[1]

    def clusters(self) -> tuple[ClusterId, ...]:
        return tuple(ClusterId(it.id) for it in self._read(self._asked(CLUSTERS).select([]).stream))

    def workloads(self, cluster: ClusterId, uids: Collection[WorkloadUid]) -> Found[WorkloadUid, WorkloadRecord]:
        return self.together(cluster, Names(workloads=uids)).workloads

    def slices(self, cluster: ClusterId, ids: Collection[SliceId]) -> Found[SliceId, SliceRecord]:
        return self.together(cluster, Names(slices=ids)).slices

    def having(self, cluster: ClusterId, claims: Collection[ClaimId]) -> Found[ClaimId, SliceRecord]:
        asked = sorted(claims)
        parts = (asked[first : first + CLAIMS_AT_ONCE] for first in range(0, len(asked), CLAIMS_AT_ONCE))
        return by_claim((each for part in parts for each in self._read(self._asked(CLAIMED, part).stream)), cluster)

    def hearing(
        self, cluster: ClusterId, workload: WorkloadUid, most: int | None = None
    ) -> tuple[Stored[SliceRecord], ...]:
        asked = self._asked(HEARING, news_of(cluster, workload))
        return self._leading(SliceRecord, most, asked) if most else tuple(self._pages(SliceRecord, self._page, asked))

    def alike(self, cluster: ClusterId, workload: WorkloadUid, most: int) -> Iterator[Alike]:
        after, end = told_of_all(cluster, workload)
        while page := self._leading(SliceRecord, most, self._asked(TOLD_OF_WORKLOAD, after, end)):
            after = tells(page[0].value) or end
            first = tuple(itertools.takewhile(lambda it: tells(it.value) == after, page))  # noqa: B023 - used up here
            yield Alike(len(first) if len(first) < most else self._count(TOLD_ALIKE, after), first)

    def told_alike(
        self, cluster: ClusterId, workload: WorkloadUid, why: tuple[Phase, Reason], most: int
    ) -> tuple[Stored[SliceRecord], ...]:
        return self._leading(SliceRecord, most, self._asked(TOLD_OF_WORKLOAD, *told_alike(cluster, workload, why)))

    def awaiting_chips(self, cluster: ClusterId, start: str, most: int) -> tuple[Stored[WorkloadRecord], ...]:
        begin, end = chips_line(cluster, start), chips_line(cluster, "\uffff")
        return self._leading(WorkloadRecord, most, self._asked(AWAITING_CHIPS, begin, end))

    def clusters_with_slices(self) -> tuple[ClusterId, ...]:
        found: list[ClusterId] = []
        while head := self._head(CLUSTERS_WITH_SLICES, _KEPT, found[-1] if found else ""):
            found.append(head["cluster"])
        return tuple(found)

    def slice_count(self, cluster: ClusterId) -> int:
        return self._count(KEPT_SLICES, cluster, _KEPT)

    def changed_workloads(self, cluster: ClusterId, since: datetime, most: int) -> tuple[WorkloadUid, ...]:
        asked = self._asked(CHANGED_SLICES, cluster, since).select(["owner.uid", CHANGED_SLICES.order])
        found: dict[WorkloadUid, None] = {}
        for snapshot in self._snapshots(asked, self._page) if most else ():
            uid = snapshot.get("owner.uid")
            if isinstance(uid, str):
                found[WorkloadUid(uid)] = None
            if len(found) == most:
                break
        return tuple(found)

    def live_workloads(self, cluster: ClusterId) -> Iterator[Stored[WorkloadRecord]]:
        return self._every(WorkloadRecord, LIVE_WORKLOADS, cluster, _LIVE)

    def live_standings(
        self, cluster: ClusterId, after: WorkloadUid | None = None, up_to: WorkloadUid | None = None
    ) -> Iterator[tuple[WorkloadUid, Standing]]:
        prefix = key(WorkloadRecord, cluster, "").id
        asked = self._asked(LIVE_WORKLOADS, cluster, _LIVE).select(["state", STANDING])
        asked = asked.end_at({"__name__": f"{prefix}{up_to}"}) if up_to is not None else asked
        start = {"__name__": f"{prefix}{after}"} if after is not None else None
        for it in self._snapshots(asked, NAMES * self._page, start):
            fields = it.to_dict() or {}
            yield WorkloadUid(it.id.removeprefix(prefix)), Standing.of(fields.get(STANDING), fields.get("state"))

    def digests(self, cluster: ClusterId) -> Mapping[Family, int]:
        demand, standings = self._sums(TOLD_IN_CLUSTER, cluster, _LIVE)
        hosts = self._sum(HOSTS_IN_CLUSTER, cluster)
        return {Family.WORKLOADS: standings, Family.DEMAND: demand, Family.HOSTS: hosts}

    def mirror_digest(self, cluster: ClusterId) -> int:
        return self._sum(SLICES_SHOWN, cluster, 0) + self._sum(WORKLOADS_SHOWN, cluster, 0)

    def demand_digests(self, cluster: ClusterId) -> Mapping[WorkloadUid, int]:
        prefix = key(WorkloadRecord, cluster, "").id
        asked = self._asked(DEMAND, cluster, 0).select([DEMAND_DIGEST])
        found = self._snapshots(asked, NAMES * self._page)
        return {WorkloadUid(it.id.removeprefix(prefix)): it.get(DEMAND_DIGEST) for it in found}

    def kept_slices(self, cluster: ClusterId) -> Iterator[Stored[SliceRecord]]:
        return self._every(SliceRecord, KEPT_SLICES, cluster, _KEPT)

    def every_slice(self, cluster: ClusterId) -> Iterator[Stored[SliceRecord]]:
        return self._every(SliceRecord, EVERY_SLICE, cluster)

    def slots(self, cluster: ClusterId) -> tuple[Stored[Slot], ...]:
        return tuple(self._every(Slot, SLOTS, cluster))

    def limiter(self, cluster: ClusterId) -> Stored[ConcurrencyLimiter] | None:
        return self.together(cluster, Names(limiter=True)).limiter

    def budget(self, cluster: ClusterId) -> Stored[Budget] | None:
        new = Budget.of(cluster, _LONG_AGO)
        return one(self._get([key_of(new)]), new)

    def chips_bought(self, cluster: ClusterId, namespace: str | None = None) -> int:
        if namespace is None:
            return self._sum(BOUGHT_IN_CLUSTER, cluster)
        return self._sum(BOUGHT_IN_NAMESPACE, cluster, namespace)

    def chips_held(self, cluster: ClusterId) -> tuple[int, int]:
        held, idle = self._sums(HELD_IN_CLUSTER, cluster)
        return held, idle

    def phase_count(self, cluster: ClusterId, phase: Phase) -> int:
        return self._count(SLICES_IN_PHASE, cluster, phase.value)

    def reason_count(self, cluster: ClusterId, reasons: Collection[Reason]) -> int:
        return self._count(SLICES_FOR_REASONS, cluster, [reason.value for reason in reasons])

    def oldest_since(self, cluster: ClusterId, reasons: Collection[Reason]) -> datetime | None:
        head = self._head(SLICES_FOR_REASONS, cluster, [reason.value for reason in reasons])
        since = head["since"] if head else None
        return since if isinstance(since, datetime) else None

    def for_reasons(
        self, cluster: ClusterId, reasons: Collection[Reason], most: int
    ) -> tuple[Stored[SliceRecord], ...]:
        asked = self._asked(SLICES_FOR_REASONS, cluster, [reason.value for reason in reasons])
        return self._leading(SliceRecord, most, asked)

    def paid_longest(self, cluster: ClusterId) -> tuple[SliceId, datetime] | None:
        found = self._read(self._asked(PAID_SLICES, cluster, _LONG_AGO).select([PAID_SINCE]).limit(1).stream)
        prefix = key(SliceRecord, cluster, "").id
        return (SliceId(found[0].id.removeprefix(prefix)), fields_of(found[0])[PAID_SINCE]) if found else None

    def wanting(self, request: str, most: int, *, of_any: bool = False) -> tuple[Stored[SliceRecord], ...]:
        return self._leading(SliceRecord, most, self._asked(WANTING_OF_ANY if of_any else WANTING, request))

    def offered(self, request: str, most: int, *, to_any: bool = False) -> tuple[Stored[SliceRecord], ...]:
        return self._leading(SliceRecord, most, self._asked(OFFERED_TO_ANY if to_any else OFFERED, request))

    def brake(self, cluster: ClusterId) -> Stored[Brake] | None:
        return self.together(cluster, Names(brake=True)).brake

    def unconfirmed_ends(self, cluster: ClusterId, since: datetime, namespace: str | None = None) -> int:
        if namespace is None:
            return self._count(UNCONFIRMED_IN_CLUSTER, cluster, True, since)  # noqa: FBT003 - a value to compare with
        return self._count(UNCONFIRMED_IN_NAMESPACE, cluster, namespace, since)

    def ready_count(self, cluster: ClusterId, most: int, namespace: str | None = None) -> int:
        ready = Phase.READY.value
        if namespace is None:
            return self._count(SLICES_IN_PHASE, cluster, ready, most=most)
        return self._count(NAMESPACE_IN_PHASE, cluster, namespace, ready, most=most)

    def heartbeat(self, cluster: ClusterId) -> Stored[RelayHeartbeat] | None:
        return self.together(cluster, Names(heartbeat=True)).heartbeat

    def commit(self, *changes: Change) -> tuple[Revision, ...]:
        places = [place_of(change) for change in changes]
        batch = self._client.batch()
        with classified_errors():
            for place, change in zip(places, changes, strict=True):
                self._add(change, self._reference(place), batch)
            try:
                results = batch.commit(retry=self._retry, timeout=self._timeout)
            except (AlreadyExists, FailedPrecondition, NotFound) as stale:
                raise StaleRecord(stale.message) from stale
        return tuple(
            revision_of(result) if change.after else Revision("")
            for change, result in zip(changes, results, strict=True)
        )

    def _add(self, change: Change, reference: DocumentReference, batch: WriteBatch) -> None:
        match change:
            case Change(None, after) if after:
                batch.create(reference, encode(after))
            case Change(before, None) if before:
                batch.delete(reference, option=self._unchanged(before))
            case Change(before, after) if before and after:
                # Each field is replaced as a whole, so that removed map entries are gone; unknown fields stay.
                fields = encode_change(before.value, after) if before.is_whole else encode(after)
                batch.update(reference, fields or encode(after), option=self._unchanged(before))

    def reject(self, rejection: RejectedMessage) -> None:
        with classified_errors():
            place, document = rejection_key(rejection), encode_rejection(rejection)
            self._reference(place).set(document, retry=self._retry, timeout=self._timeout)

    def _unchanged(self, before: Stored[Record]) -> Any:
        return self._client.write_option(last_update_time=datetime.fromisoformat(before.revision))
