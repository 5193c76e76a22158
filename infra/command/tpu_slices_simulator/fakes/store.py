"""The store in memory, with the contract of the real one; commits are kept for tests to look at.

Values are kept as documents: what the wire format cannot hold is lost, and what Firestore refuses is refused.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from operator import itemgetter
from typing import TypeVar

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import Family, WorkloadState
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import SLICES_PER_WORKLOAD, ClaimId, ClusterId, SliceId, WorkloadUid
from tpu_slices.domain.records.brakes import Brake
from tpu_slices.domain.records.heartbeats import RelayHeartbeat
from tpu_slices.domain.records.limiters import Budget, ConcurrencyLimiter, Slot
from tpu_slices.domain.records.matching import (
    goes_at,
    hears,
    news_of,
    offers,
    offers_to_any,
    tells,
    told_of_all,
    wants,
    wants_of_any,
)
from tpu_slices.domain.records.rejected import RejectedMessage
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.standings import Standing
from tpu_slices.domain.records.workloads import WorkloadRecord
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.store import Alike, Change, Found, Names, Record, Revision, Stored, Together
from tpu_slices.wire import documents
from tpu_slices.wire.cluster_settings import accepted_key, decode_settings, pause_key, settings_key, with_pause
from tpu_slices.wire.documents import Fields, key
from tpu_slices_simulator.fakes import firestore_rules
from tpu_slices_simulator.fakes.documents import KeptDocument
from tpu_slices_simulator.fakes.turns import FakeTurns

R = TypeVar("R", bound=Record)
N = TypeVar("N", bound=str)
T = TypeVar("T")
_LIVE = [state.value for state in WorkloadState if not state.ended]
_LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
_NEW_LIMITER = partial(ConcurrencyLimiter.of, now=_LONG_AGO)


@dataclass(slots=True)
class FakeStore(FakeTurns):
    """The port `SliceStore`. Buttons: `unavailable`, `fail_next`, `lose_next_answer`, `meanwhile`."""

    # What the port promises

    def together(self, cluster: ClusterId, names: Names) -> Together:
        self._answer()
        return Together(
            settings=self._settings_of(cluster) if names.settings else None,
            slices=self._named(SliceRecord, cluster, names.slices),
            having=self._having(cluster, names.claims),
            workloads=self._named(WorkloadRecord, cluster, names.workloads),
            heartbeat=self._one(RelayHeartbeat, cluster, RelayHeartbeat.of) if names.heartbeat else None,
            limiter=self._one(ConcurrencyLimiter, cluster, _NEW_LIMITER) if names.limiter else None,
            brake=self._read(Brake, key(Brake, cluster)) if names.brake else None,
            slots=self._slots(cluster) if names.slots else None,
        )

    def settings(self, cluster: ClusterId) -> ClusterSettings | None:
        self._answer()
        return self._settings_of(cluster)

    def _settings_of(self, cluster: ClusterId) -> ClusterSettings | None:
        written, accepted = (self._documents.get(place) for place in (settings_key(cluster), accepted_key(cluster)))
        if written is None:
            return None
        try:
            settings = self._settings_in(cluster, written)
        except Permanent as problem:
            if accepted is None:
                raise
            self.unreadable[str(settings_key(cluster))] = str(problem)
            settings = self._settings_in(cluster, accepted)
        pause = self._documents.get(pause_key(cluster))
        return with_pause(settings, pause.fields if pause else None)

    def _settings_in(self, cluster: ClusterId, document: KeptDocument) -> ClusterSettings:
        if document.revision not in self._settings:
            try:
                self._settings[document.revision] = decode_settings(cluster, document.fields, document.revision)
            except Permanent as problem:
                self._settings[document.revision] = problem
        known = self._settings[document.revision]
        if isinstance(known, Permanent):
            raise Permanent(str(known))
        return known

    def settings_at(self, path: str) -> tuple[ClusterSettings, ...]:
        at = (settings_key(each) for each in self.clusters())
        named = [ClusterId(place.id) for place in at if self._documents[place].fields.get("path") == path]
        return tuple(each for each in map(self.settings, named) if each is not None)

    def clusters(self) -> tuple[ClusterId, ...]:
        self._answer()
        return tuple(sorted(ClusterId(known.id) for known in self._documents if known.collection == "clusters"))

    def workloads(self, cluster: ClusterId, uids: Collection[WorkloadUid]) -> Found[WorkloadUid, WorkloadRecord]:
        self._answer()
        return self._named(WorkloadRecord, cluster, uids)

    def slices(self, cluster: ClusterId, ids: Collection[SliceId]) -> Found[SliceId, SliceRecord]:
        self._answer()
        return self._named(SliceRecord, cluster, ids)

    def having(self, cluster: ClusterId, claims: Collection[ClaimId]) -> Found[ClaimId, SliceRecord]:
        self._answer()
        return self._having(cluster, claims)

    def hearing(
        self, cluster: ClusterId, workload: WorkloadUid, most: int | None = None
    ) -> tuple[Stored[SliceRecord], ...]:
        self._answer()
        found = self._computed(SliceRecord, "hears", lambda: self._by(hears)).get(news_of(cluster, workload), [])
        return tuple(sorted(found, key=lambda it: it.value.id)[:most])

    def alike(self, cluster: ClusterId, workload: WorkloadUid, most: int) -> Iterator[Alike]:
        self._answer()
        every = self._computed(SliceRecord, "tells", lambda: self._by(tells))
        after, end = told_of_all(cluster, workload)
        for each in sorted(name for name in every if after < name < end):
            found = sorted(every[each], key=lambda it: (it.value.replicated_job, it.value.job_index))
            yield Alike(len(found), tuple(found[:most]))

    def told_alike(
        self, cluster: ClusterId, workload: WorkloadUid, why: tuple[Phase, Reason], most: int
    ) -> tuple[Stored[SliceRecord], ...]:
        found = [it for alike in self.alike(cluster, workload, SLICES_PER_WORKLOAD) for it in alike.first]
        return tuple(it for it in found if (it.value.phase, it.value.reason) == why)[:most]

    def awaiting_chips(self, cluster: ClusterId, start: str, most: int) -> tuple[Stored[WorkloadRecord], ...]:
        self._answer()
        waiting = (it for it in self._of(cluster, WorkloadRecord) if it.value.awaits_chips)
        behind = (it for it in waiting if it.value.owner.namespace >= start)
        return tuple(
            sorted(behind, key=lambda it: (it.value.owner.namespace, it.value.chips_awaited_since or _LONG_AGO))[:most]
        )

    def clusters_with_slices(self) -> tuple[ClusterId, ...]:
        self._answer()
        return self._computed(SliceRecord, "clusters", self._clusters_with_slices)

    def _clusters_with_slices(self) -> tuple[ClusterId, ...]:
        return tuple(sorted({it.value.cluster for it in self._all(SliceRecord) if it.value.phase is not Phase.GONE}))

    def slice_count(self, cluster: ClusterId) -> int:
        return len(list(self.kept_slices(cluster)))

    def changed_workloads(self, cluster: ClusterId, since: datetime, most: int) -> tuple[WorkloadUid, ...]:
        every = self._summed(cluster, "changed_at", _changes)
        changed = [uid for at, uid in every[bisect_right(every, since, key=itemgetter(0)) :]]
        return tuple(dict.fromkeys(changed))[:most]

    def awaits_slot(self, cluster: ClusterId) -> bool:
        awaited = (fields.get("slot_awaited") for fields in self._slice_documents(cluster))
        return any(each is not None and each.get("number") is None for each in awaited)

    def live_workloads(self, cluster: ClusterId) -> Iterator[Stored[WorkloadRecord]]:
        self._answer()
        return (stored for stored in self._of(cluster, WorkloadRecord) if stored.value.live)

    def live_standings(
        self, cluster: ClusterId, after: WorkloadUid | None = None, up_to: WorkloadUid | None = None
    ) -> Iterator[tuple[WorkloadUid, Standing]]:
        self._answer()
        every = self._computed(WorkloadRecord, ("standings", cluster), lambda: self._standings(cluster))
        return (it for it in every if (after is None or it[0] > after) and (up_to is None or it[0] <= up_to))

    def _standings(self, cluster: ClusterId) -> list[tuple[WorkloadUid, Standing]]:
        found = self._matching(WorkloadRecord, lambda it: it.get("cluster") == cluster and it.get("state") in _LIVE)
        told = {WorkloadUid(at.id.removeprefix(f"{cluster}.")): self._documents[at].fields.get for at in found}
        return [(uid, Standing.of(told[uid](documents.STANDING), told[uid]("state"))) for uid in sorted(told)]

    def digests(self, cluster: ClusterId) -> Mapping[Family, int]:
        return {
            Family.WORKLOADS: sum(each.digest for _, each in self.live_standings(cluster)),
            Family.DEMAND: sum(self.demand_digests(cluster).values()),
            Family.HOSTS: self._sum(cluster, documents.HOSTS_DIGEST),
        }

    def mirror_digest(self, cluster: ClusterId) -> int:
        workloads = self._matching(WorkloadRecord, lambda it: it.get("cluster") == cluster)
        told: int = sum(self._documents[at].fields.get(documents.MIRROR_DIGEST, 0) for at in workloads)
        return told + self._sum(cluster, documents.MIRROR_DIGEST)

    def demand_digests(self, cluster: ClusterId) -> Mapping[WorkloadUid, int]:
        self._answer()
        return self._computed(WorkloadRecord, ("demand", cluster), lambda: self._demand_digests(cluster))

    def _demand_digests(self, cluster: ClusterId) -> Mapping[WorkloadUid, int]:
        found = self._matching(
            WorkloadRecord, lambda it: it.get("cluster") == cluster and it.get("demand_digest", 0) > 0
        )
        prefix = f"{cluster}."
        return {WorkloadUid(at.id.removeprefix(prefix)): self._documents[at].fields["demand_digest"] for at in found}

    def kept_slices(self, cluster: ClusterId) -> Iterator[Stored[SliceRecord]]:
        self._answer()
        return (stored for stored in self._of(cluster, SliceRecord) if stored.value.phase is not Phase.GONE)

    def every_slice(self, cluster: ClusterId) -> Iterator[Stored[SliceRecord]]:
        self._answer()
        return iter(self._of(cluster, SliceRecord))

    def slots(self, cluster: ClusterId) -> tuple[Stored[Slot], ...]:
        self._answer()
        return self._slots(cluster)

    def _slots(self, cluster: ClusterId) -> tuple[Stored[Slot], ...]:
        return tuple(sorted(self._of(cluster, Slot), key=lambda stored: stored.value.number))

    def limiter(self, cluster: ClusterId) -> Stored[ConcurrencyLimiter] | None:
        self._answer()
        return self._one(ConcurrencyLimiter, cluster, _NEW_LIMITER)

    def budget(self, cluster: ClusterId) -> Stored[Budget] | None:
        self._answer()
        return self._one(Budget, cluster, lambda _: Budget.of(cluster, _LONG_AGO))

    def chips_bought(self, cluster: ClusterId, namespace: str | None = None) -> int:
        if namespace is None:
            return self._sum(cluster, documents.CHIPS_BOUGHT)
        return self._summed(
            cluster,
            (documents.CHIPS_BOUGHT, namespace),
            lambda every: _sum(documents.CHIPS_BOUGHT, (it for it in every if it["owner"]["namespace"] == namespace)),
        )

    def chips_held(self, cluster: ClusterId) -> tuple[int, int]:
        held, idle = (self._sum(cluster, name) for name in (documents.CHIPS_HELD, documents.CHIPS_IDLE))
        return held, idle

    def phase_count(self, cluster: ClusterId, phase: Phase) -> int:
        return self._summed(cluster, "phase", lambda every: Counter(fields["phase"] for fields in every))[phase]

    def reason_count(self, cluster: ClusterId, reasons: Collection[Reason]) -> int:
        counts = self._summed(cluster, "reason", lambda every: Counter(fields["reason"] for fields in every))
        return sum(counts[reason] for reason in reasons)

    def oldest_since(self, cluster: ClusterId, reasons: Collection[Reason]) -> datetime | None:
        since = self._summed(cluster, "since", lambda every: [(fields["reason"], fields["since"]) for fields in every])
        return min((at for reason, at in since if reason in reasons), default=None)

    def for_reasons(
        self, cluster: ClusterId, reasons: Collection[Reason], most: int
    ) -> tuple[Stored[SliceRecord], ...]:
        self._answer()
        found = (it for it in self._of(cluster, SliceRecord) if it.value.reason in reasons)
        return tuple(sorted(found, key=lambda it: (it.value.since, it.value.id))[:most])

    def paid_longest(self, cluster: ClusterId) -> tuple[SliceId, datetime] | None:
        self._answer()
        paid = self._computed(SliceRecord, ("paid", cluster), lambda: self._paid(cluster))
        return min(((id_, at) for id_, at in paid if at is not None), key=lambda it: (it[1], it[0]), default=None)

    def _paid(self, cluster: ClusterId) -> list[tuple[SliceId, datetime | None]]:
        prefix = f"{cluster}."
        found = (place for place in self._in(documents.COLLECTIONS[SliceRecord]) if place.id.startswith(prefix))
        fields = ((place, self._documents[place].fields) for place in found)
        return [(SliceId(place.id.removeprefix(prefix)), each.get(documents.PAID_SINCE)) for place, each in fields]

    def wanting(self, request: str, most: int, *, of_any: bool = False) -> tuple[Stored[SliceRecord], ...]:
        self._answer()
        name = wants_of_any if of_any else wants
        found = self._computed(SliceRecord, name.__name__, lambda: self._by(name)).get(request, [])
        return tuple(sorted(found, key=lambda it: (it.value.claim.waits_since or _LONG_AGO, it.value.id))[:most])

    def offered(self, request: str, most: int, *, to_any: bool = False) -> tuple[Stored[SliceRecord], ...]:
        self._answer()
        name = offers_to_any if to_any else offers
        found = self._computed(SliceRecord, name.__name__, lambda: self._by(name)).get(request, [])
        return tuple(sorted(found, key=lambda it: (goes_at(it.value) or _LONG_AGO, it.value.id))[:most])

    def _by(self, name: Callable[[SliceRecord], str | None]) -> Mapping[str, list[Stored[SliceRecord]]]:
        """Return the slices that have a name, by it."""
        found: dict[str, list[Stored[SliceRecord]]] = {}
        for stored in self._all(SliceRecord):
            if (named := name(stored.value)) is not None:
                found.setdefault(named, []).append(stored)
        return found

    def _sum(self, cluster: ClusterId, name: str) -> int:
        return self._summed(cluster, name, lambda every: _sum(name, every))

    def _summed(self, cluster: ClusterId, question: Hashable, compute: Callable[[Iterable[Fields]], T]) -> T:
        """Return what the database computes of slices, whether or not they can be read as records."""
        self._answer()
        return self._computed(SliceRecord, (question, cluster), lambda: compute(self._slice_documents(cluster)))

    def _slice_documents(self, cluster: ClusterId) -> list[Fields]:
        places = self._in(documents.COLLECTIONS[SliceRecord])
        every = self._computed(SliceRecord, "documents", lambda: [self._documents[place].fields for place in places])
        return [fields for fields in every if fields["cluster"] == cluster]

    def brake(self, cluster: ClusterId) -> Stored[Brake] | None:
        self._answer()
        return self._read(Brake, key(Brake, cluster))

    def unconfirmed_ends(self, cluster: ClusterId, since: datetime, namespace: str | None = None) -> int:
        ends = self._summed(cluster, "unconfirmed ends", lambda every: [*_unconfirmed_ends(every)])
        of = (end for each, end in ends if (end["counted"] if namespace is None else each == namespace))
        return sum(end["found_at"] >= since for end in of)

    def ready_count(self, cluster: ClusterId, most: int, namespace: str | None = None) -> int:
        counts = self._summed(cluster, "ready", lambda every: Counter(_namespaces_in(Phase.READY, every)))
        return min(most, counts.total() if namespace is None else counts[namespace])

    def heartbeat(self, cluster: ClusterId) -> Stored[RelayHeartbeat] | None:
        self._answer()
        return self._one(RelayHeartbeat, cluster, RelayHeartbeat.of)

    def commit(self, *changes: Change) -> tuple[Revision, ...]:
        if self._meanwhile:
            self._meanwhile.popleft()()
        self._answer()
        with self._lock:
            written = dict(self._documents)
            places = [documents.place_of(change) for change in changes]
            revisions = tuple(self._apply(*each, written) for each in zip(changes, places, strict=True))
            firestore_rules.check_commit(written[place].written.size for place in places if place in written)
            self._documents = written
            for change, place in zip(changes, places, strict=True):
                self._answers.pop(place.collection, None)
                self._claim(change, place)
                if change.before is None or change.after is None:
                    self._unlist(place.collection)
                else:
                    self._rewritten.setdefault(place.collection, set()).add(place)
            self.commits.append(changes)
        if self._lost_answers:
            self._lost_answers -= 1
            raise Temporary("the answer to a commit was lost")
        return revisions

    def reject(self, rejection: RejectedMessage) -> None:
        self._answer()
        self.put_document(documents.rejection_key(rejection), documents.encode_rejection(rejection))
        self.rejections[rejection.message_id] = rejection


def _changes(every: Iterable[Fields]) -> list[tuple[datetime, WorkloadUid]]:
    """Return when slices changed, of which workloads, in the order of time."""
    return sorted((each["changed_at"], WorkloadUid(each["owner"]["uid"])) for each in every if each.get("changed_at"))


def _unconfirmed_ends(every: Iterable[Fields]) -> Iterator[tuple[str, Fields]]:
    """Yield the ends of slices that nobody confirmed, with their namespaces."""
    for each in every:
        if (end := each.get("unconfirmed_end")) is not None:
            yield each["owner"]["namespace"], end


def _namespaces_in(phase: Phase, every: Iterable[Fields]) -> Iterator[str]:
    return (each["owner"]["namespace"] for each in every if each["phase"] == phase)


def _sum(name: str, every: Iterable[Fields]) -> int:
    return sum(fields[name] for fields in every if name in fields)
