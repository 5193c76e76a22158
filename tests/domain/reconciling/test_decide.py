"""The decision table: one row per case, with the phase, the reason and the actions that it must lead to."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.builders import MINUTE, NOW, a_record, a_spec, asked_to_close, had, heard, settings, some_hosts, with_fields
from tests.domain.cases import (
    BARE,
    GUEST,
    GUEST_ENDED,
    HEARD_AGAIN,
    HOUR,
    LEFT,
    LOST,
    OTHERS,
    OURS,
    OWN,
    REJECTION,
    SIBLING,
    SILENT,
    STOCKOUT,
    going,
    in_use,
    lasting,
    ready,
    requested,
    seen,
    unneeded,
    was_seen,
    with_hosts,
)
from tpu_slices.domain.model.clusters import Limits
from tpu_slices.domain.model.observations import (
    Absent,
    Broken,
    Busy,
    Cause,
    Creating,
    Deleting,
    Failure,
    FailureKind,
    Observation,
    Running,
    Unowned,
    Unreadable,
    Witness,
)
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import LAST_ATTEMPT, slice_id
from tpu_slices.domain.reconciling.binding import without_gone
from tpu_slices.domain.reconciling.case import Known, Situation
from tpu_slices.domain.reconciling.decide import decide
from tpu_slices.domain.reconciling.decisions import (
    Action,
    CloseHosts,
    CreatePool,
    Decision,
    DeletePool,
    OpenHosts,
    Relabel,
)
from tpu_slices.domain.records.attempts import Relabelling
from tpu_slices.domain.records.awaited import PoolOperation, SlotAwaited
from tpu_slices.domain.records.claims import Refusal
from tpu_slices.domain.records.slices import Desire, SliceRecord

LIMITS = Limits()
SECOND = timedelta(seconds=1)
GRANTED = heard(slots={1: 0, 2: 2})
"""A slot is granted to the first attempt, and one to the second."""
JUST = {
    "create_requested_at": NOW - MINUTE,
    "slot": 0,
    "reason": Reason.CREATION_STARTED,
    "seen": was_seen(Creating(), Witness.REQUEST),
}
BLOCKED = {"phase": Phase.BLOCKED, "reason": Reason.INVALID_CONFIGURATION}
OUT_OF_STOCK = {"phase": Phase.WAITING, "reason": Reason.STOCKOUT}
BY_OWN = some_hosts(occupants=(OWN,))
BY_GUEST = some_hosts(occupants=(GUEST,))
RELABEL = (Relabel(1),)
LATER = Relabelling(lacking="it has no label.", again_at=NOW + MINUTE)
CLOSE, CREATE, CREATE_NEXT = (CloseHosts(1, 1),), (CreatePool(1),), (CreatePool(2),)
WAITS: dict[str, Any] = {"demand_confirmed_at": NOW}
LATE: dict[str, Any] = {"demand_confirmed_at": NOW - 16 * MINUTE}


def a_failure(kind: FailureKind, message: str) -> Broken:
    return Broken(Failure(kind, message))


Row = tuple[str, SliceRecord, Observation, Known, Phase, Reason, tuple[Action, ...]]

ABSENT: list[Row] = [
    ("first create", a_record(), Absent(), GRANTED, Phase.PROVISIONING, Reason.CREATION_STARTED, CREATE),
    ("no slot", a_record(), Absent(), heard(), Phase.QUEUED, Reason.OPERATION_LIMIT, ()),
    ("no demand", a_record(demand_confirmed_at=None), Absent(), GRANTED, Phase.QUEUED, Reason.DEMAND_STALE, ()),
    ("stale demand", a_record(**LATE), Absent(), GRANTED, Phase.QUEUED, Reason.DEMAND_STALE, ()),
    ("no spec", a_record(spec=None), Absent(), GRANTED, Phase.QUEUED, Reason.DEMAND_STALE, ()),
    ("create lost", requested(**JUST), Absent(), heard(), Phase.PROVISIONING, Reason.CREATION_STARTED, CREATE),
    (
        "create lost, relay silent", requested(**JUST),
        Absent(), SILENT, Phase.PROVISIONING, Reason.CREATION_STARTED, CREATE,
    ),
    ("create lost, demand stale", requested(**JUST, **LATE), Absent(), heard(), Phase.QUEUED, Reason.DEMAND_STALE, ()),
    ("its pool vanished", ready(**WAITS), Absent(), GRANTED, Phase.PROVISIONING, Reason.CREATION_STARTED, CREATE),
    (
        "impossible",
        a_record(spec=None, refusal=Refusal(reason=Reason.IMPOSSIBLE_SHAPE, message="no 3x5x7")),
        Absent(), GRANTED, Phase.REFUSED, Reason.IMPOSSIBLE_SHAPE, (),
    ),
    ("rejected", a_record(rejection=REJECTION), Absent(), GRANTED, Phase.REFUSED, Reason.LEADER_UNSCHEDULABLE, ()),
    (
        "rejected under earlier settings",
        a_record(rejection=replace(REJECTION, settings_version="settings-0")),
        Absent(), GRANTED, Phase.PROVISIONING, Reason.CREATION_STARTED, CREATE,
    ),
    (
        "waiting for its retry", a_record(**OUT_OF_STOCK, retry_at=NOW + MINUTE),
        Absent(), GRANTED, Phase.WAITING, Reason.STOCKOUT, (),
    ),
    (
        "retry has come", a_record(**OUT_OF_STOCK, retry_at=NOW, attempt=2),
        Absent(), GRANTED, Phase.PROVISIONING, Reason.CREATION_STARTED, CREATE_NEXT,
    ),
    (
        "blocked under these settings",
        a_record(**BLOCKED, blocked_settings_version="settings-1", retry_at=NOW + MINUTE),
        Absent(), GRANTED, Phase.BLOCKED, Reason.INVALID_CONFIGURATION, (),
    ),
    (
        "blocked under earlier settings",
        a_record(**BLOCKED, blocked_settings_version="settings-0", retry_at=NOW + MINUTE),
        Absent(), GRANTED, Phase.PROVISIONING, Reason.CREATION_STARTED, CREATE,
    ),
    (
        "blocked long ago", a_record(**BLOCKED, blocked_settings_version="settings-1", retry_at=NOW),
        Absent(), GRANTED, Phase.PROVISIONING, Reason.CREATION_STARTED, CREATE,
    ),
    ("used up", a_record(attempt=LAST_ATTEMPT + 1), Absent(), GRANTED, Phase.BLOCKED, Reason.ATTEMPTS_EXHAUSTED, ()),
    (
        "an adopted pool is gone", requested(attempt=0, legacy_pool="llama-4f2a1"),
        Absent(), GRANTED, Phase.PROVISIONING, Reason.CREATION_STARTED, CREATE_NEXT,
    ),
    # ABSENT
    ("never created", unneeded(a_record()), Absent(), heard(), Phase.GONE, Reason.NEVER_CREATED, ()),
    ("created long ago", unneeded(requested()), Absent(), heard(), Phase.GONE, Reason.RELEASED, ()),
    ("released twice", unneeded(a_record(attempt=3)), Absent(), heard(), Phase.GONE, Reason.RELEASED, ()),
    ("just requested", unneeded(requested(**JUST)), Absent(), heard(), Phase.RELEASING, Reason.CREATION_IN_DOUBT, ()),
    ("unneeded, relay silent", unneeded(requested()), Absent(), SILENT, Phase.GONE, Reason.RELEASED, ()),
]  # fmt: skip

CREATION: list[Row] = [
    ("creating", requested(**JUST), Creating(), heard(), Phase.PROVISIONING, Reason.CREATING, ()),
    ("creating, relay silent", requested(**JUST), Creating(), SILENT, Phase.PROVISIONING, Reason.CREATING, ()),
    (
        "creating, not waited for", requested(**JUST, **LATE),
        Creating(), heard(), Phase.PROVISIONING, Reason.CREATING, (),
    ),
    ("no operation, not for long", requested(**JUST), LOST, heard(), Phase.PROVISIONING, Reason.CREATING, ()),
    ("no operation for long", requested(), LOST, heard(), Phase.WAITING, Reason.CREATION_FAILED, ()),
    ("no operation, relay silent", requested(), LOST, SILENT, Phase.PROVISIONING, Reason.CREATING, ()),
    (
        "creating, unneeded", unneeded(requested(**JUST)),
        Creating(), heard(), Phase.RELEASING, Reason.CLOSING_HOSTS, CLOSE,
    ),
    ("stockout", requested(**JUST), Broken(STOCKOUT), heard(), Phase.WAITING, Reason.STOCKOUT, ()),
    ("stockout, relay silent", requested(**JUST), Broken(STOCKOUT), SILENT, Phase.WAITING, Reason.STOCKOUT, ()),
    (
        "permissions", requested(**JUST), a_failure(FailureKind.CONFIGURATION, "no such service account"),
        heard(), Phase.BLOCKED, Reason.INVALID_CONFIGURATION, (),
    ),
    (
        "a shape that GKE never makes", requested(**JUST), a_failure(FailureKind.IMPOSSIBLE, "Unsupported"),
        heard(), Phase.REFUSED, Reason.IMPOSSIBLE_SHAPE, (),
    ),
    (
        "failed, unneeded", unneeded(requested(**JUST)),
        Broken(STOCKOUT), heard(), Phase.RELEASING, Reason.CLOSING_HOSTS, CLOSE,
    ),
]  # fmt: skip

RUNNING: list[Row] = [
    ("no host yet", requested(**JUST), OURS, heard(), Phase.PROVISIONING, Reason.HOSTS_JOINING, ()),
    (
        "three of four", requested(**JUST, hosts=some_hosts(usable=3)),
        OURS, heard(), Phase.PROVISIONING, Reason.HOSTS_JOINING, (),
    ),
    ("all hosts", requested(**JUST, hosts=some_hosts()), OURS, heard(), Phase.READY, Reason.READY, ()),
    ("all hosts, relay silent", requested(**JUST, hosts=some_hosts()), OURS, SILENT, Phase.READY, Reason.READY, ()),
    ("a host was lost", ready(hosts=some_hosts(usable=3)), OURS, heard(), Phase.PROVISIONING, Reason.HOSTS_LOST, ()),
    (
        "a host is missing for long", lasting(Reason.HOSTS_JOINING, LIMITS.hosts_timeout, hosts=some_hosts(usable=3)),
        OURS, heard(), Phase.WAITING, Reason.HOSTS_NOT_USABLE, (),
    ),
    (
        "a host is missing for long, and its Job is on the others",
        lasting(Reason.HOSTS_LOST, HOUR, hosts=replace(BY_OWN, usable=3)),
        OURS, heard(), Phase.PROVISIONING, Reason.HOSTS_LOST, (),
    ),
    (
        "a host is missing for long, relay silent", lasting(Reason.HOSTS_LOST, HOUR, hosts=some_hosts(usable=3)),
        OURS, SILENT, Phase.PROVISIONING, Reason.HOSTS_LOST, (),
    ),
    ("in use", ready(hosts=BY_OWN), OURS, heard(), Phase.READY, Reason.READY, ()),
    ("in use for long", ready(9 * HOUR, hosts=BY_OWN), OURS, heard(), Phase.READY, Reason.READY, ()),
    ("the leader still waits", ready(**WAITS), OURS, heard(), Phase.READY, Reason.LEADER_STILL_WAITING, ()),
    (
        "its last leader left a moment ago", ready(hosts=some_hosts(vacant_since=NOW), **WAITS),
        OURS, heard(), Phase.READY, Reason.READY, (),
    ),
    ("not used for long", ready(LIMITS.idle_after), OURS, heard(), Phase.RELEASING, Reason.CLOSING_HOSTS, CLOSE),
    ("not used for long, relay silent", ready(LIMITS.idle_after), OURS, SILENT, Phase.READY, Reason.READY, ()),
    (
        "not used for long, and its leader waits", ready(LIMITS.idle_after, **WAITS),
        OURS, GRANTED, Phase.REFUSED, Reason.LEADER_UNSCHEDULABLE, (),
    ),
    ("found without a record", ready(spec=None), OURS, heard(), Phase.READY, Reason.ADOPTED, ()),
    ("of TPU Provisioner", requested(attempt=0, legacy_pool="a"), OURS, heard(), Phase.READY, Reason.ADOPTED, ()),
    (
        "of TPU Provisioner, with its hosts", requested(attempt=0, legacy_pool="a", hosts=BY_OWN),
        OURS, heard(), Phase.READY, Reason.READY, (),
    ),
    # others on it
    (
        "others on it, its Job does not wait", ready(hosts=BY_GUEST),
        OURS, heard(), Phase.READY, Reason.USED_BY_OTHERS, (),
    ),
    (
        "a sibling on it, its Job does not wait", ready(hosts=some_hosts(occupants=(SIBLING,))),
        OURS, heard(), Phase.READY, Reason.USED_BY_OTHERS, (),
    ),
    (
        "others on it, its Job waits", ready(hosts=BY_GUEST, **WAITS),
        OURS, GRANTED, Phase.PROVISIONING, Reason.CREATION_STARTED, CREATE_NEXT,
    ),
    (
        "others and its own Job on it", ready(hosts=some_hosts(occupants=(GUEST, OWN)), **WAITS),
        OURS, GRANTED, Phase.READY, Reason.READY, (),
    ),
    # another request
    (
        "another request, changed while suspended", ready(rebuild_allowed=True, **WAITS),
        OTHERS, GRANTED, Phase.PROVISIONING, Reason.CREATION_STARTED, CREATE_NEXT,
    ),
    (
        "another request, changed while suspended, in use", ready(rebuild_allowed=True, hosts=BY_OWN),
        OTHERS, heard(), Phase.READY, Reason.SPEC_DRIFTED, (),
    ),
    (
        "another request, changed while suspended, may restart",
        ready(rebuild_allowed=True, hosts=some_hosts(departures=LEFT)),
        OTHERS, heard(), Phase.READY, Reason.SPEC_DRIFTED, (),
    ),
    (
        "another request, changed while suspended, relay silent", ready(rebuild_allowed=True),
        OTHERS, SILENT, Phase.READY, Reason.SPEC_DRIFTED, (),
    ),
    ("another request", ready(), OTHERS, heard(), Phase.READY, Reason.SPEC_DRIFTED, ()),
    ("a fingerprint of another version", ready(), Running("v0-other"), heard(), Phase.READY, Reason.READY, ()),
    ("no fingerprint", ready(), Running(None), heard(), Phase.READY, Reason.READY, ()),
    # ABSENT
    ("finished", unneeded(ready()), OURS, heard(), Phase.RELEASING, Reason.CLOSING_HOSTS, CLOSE),
    ("finished, relay silent", unneeded(ready()), OURS, SILENT, Phase.RELEASING, Reason.RELAY_SILENT, ()),
    ("finished, relay heard again", unneeded(ready()), OURS, HEARD_AGAIN, Phase.RELEASING, Reason.USERS_UNKNOWN, ()),
    (
        "finished, stopped", unneeded(ready()),
        OURS, heard(stopped="Many."), Phase.RELEASING, Reason.RELEASES_STOPPED, (),
    ),
    (
        "finished, occupied by others", unneeded(ready(hosts=BY_GUEST)),
        OURS, heard(), Phase.RELEASING, Reason.OCCUPIED, (),
    ),
    (
        "finished, others may restart on it", unneeded(ready(hosts=some_hosts(departures=LEFT))),
        OURS, heard(), Phase.RELEASING, Reason.RESTART_POSSIBLE, (),
    ),
    (
        "finished, others ended too", unneeded(ready(hosts=BY_GUEST)),
        OURS, GUEST_ENDED, Phase.RELEASING, Reason.CLOSING_HOSTS, CLOSE,
    ),
    (
        "a requested release does not spare its own Job", unneeded(ready(hosts=BY_OWN, release_requested=True)),
        OURS, heard(), Phase.RELEASING, Reason.CLOSING_HOSTS, CLOSE,
    ),
    (
        "a requested release spares others", unneeded(ready(hosts=BY_GUEST, release_requested=True)),
        OURS, heard(), Phase.RELEASING, Reason.OCCUPIED, (),
    ),
    (
        "a forced release spares nobody", unneeded(ready(hosts=BY_GUEST, release_requested=True, release_forced=True)),
        OURS, replace(SILENT, slots={1: 0}), Phase.RELEASING, Reason.DELETION_STARTED, (DeletePool(1),),
    ),
]  # fmt: skip

REFILLS = replace(OURS, refills=True)

OTHER: list[Row] = [
    # Busy
    ("work, every host usable", ready(), Busy("repair"), heard(), Phase.READY, Reason.READY, ()),
    ("work, in use", ready(hosts=BY_OWN), Busy("repair"), heard(), Phase.READY, Reason.READY, ()),
    (
        "work, nobody says which", ready(hosts=some_hosts(usable=3)), Busy("resize"), heard(),
        Phase.PROVISIONING, Reason.POOL_BUSY, (),
    ),
    (
        "upgrade", ready(hosts=some_hosts(usable=0)), Busy("", Cause.UPGRADE), heard(),
        Phase.PROVISIONING, Reason.GKE_UPGRADES, (),
    ),
    (
        "upgrade, in use", ready(hosts=replace(BY_OWN, usable=3)), Busy("", Cause.UPGRADE), heard(),
        Phase.PROVISIONING, Reason.GKE_UPGRADES, (),
    ),
    (
        "repair", ready(hosts=some_hosts(usable=0)), Busy("", Cause.REPAIR), heard(),
        Phase.PROVISIONING, Reason.GKE_REPAIRS, (),
    ),
    (
        "maintenance of a host", ready(hosts=some_hosts(usable=3, maintained=1)), OURS, heard(),
        Phase.PROVISIONING, Reason.UNDER_MAINTENANCE, (),
    ),
    (
        "maintenance of a host that is usable yet", ready(hosts=some_hosts(maintained=1)), OURS, heard(),
        Phase.READY, Reason.READY, (),
    ),
    (
        "spot hosts were taken", ready(hosts=some_hosts(usable=0, joined=0)), REFILLS, heard(),
        Phase.PROVISIONING, Reason.PREEMPTED, (),
    ),
    (
        "spot hosts are not ready", ready(hosts=some_hosts(usable=0)), REFILLS, heard(),
        Phase.PROVISIONING, Reason.HOSTS_LOST, (),
    ),
    ("repair, unneeded", unneeded(ready()), Busy("repair"), heard(), Phase.RELEASING, Reason.CLOSING_HOSTS, CLOSE),
    # Broken later
    ("broken, every host usable", ready(), Broken(STOCKOUT), heard(), Phase.READY, Reason.READY, ()),
    (
        "broken, every host usable, in use", ready(hosts=BY_OWN),
        Broken(STOCKOUT), heard(), Phase.READY, Reason.READY, (),
    ),
    (
        "broken, every host usable, not used for long", ready(LIMITS.idle_after),
        Broken(STOCKOUT), heard(), Phase.RELEASING, Reason.CLOSING_HOSTS, CLOSE,
    ),
    (
        "broken under its Job", ready(hosts=replace(BY_OWN, usable=3)),
        Broken(STOCKOUT), heard(), Phase.PROVISIONING, Reason.POOL_BROKEN, (),
    ),
    (
        "broken, its Job may restart", ready(hosts=some_hosts(usable=3, departures=LEFT)),
        Broken(STOCKOUT), heard(), Phase.PROVISIONING, Reason.POOL_BROKEN, (),
    ),
    (
        "broken, relay silent", ready(hosts=some_hosts(usable=3)),
        Broken(STOCKOUT), SILENT, Phase.PROVISIONING, Reason.POOL_BROKEN, (),
    ),
    (
        "broken, unused", ready(hosts=some_hosts(usable=3), **WAITS),
        Broken(STOCKOUT), heard(), Phase.WAITING, Reason.STOCKOUT, (),
    ),
    (
        "broken under another JobSet, unneeded", unneeded(ready(hosts=BY_GUEST)),
        Broken(STOCKOUT), heard(), Phase.RELEASING, Reason.OCCUPIED, (),
    ),
    (
        "adopted, and broken", requested(attempt=0, legacy_pool="a", spared_until=NOW + MINUTE),
        Broken(STOCKOUT), heard(), Phase.PROVISIONING, Reason.POOL_BROKEN, (),
    ),
    # Deleting
    (
        "somebody deletes it: a new attempt need not wait", ready(**WAITS),
        Deleting(), GRANTED, Phase.PROVISIONING, Reason.CREATION_STARTED, CREATE_NEXT,
    ),
    (
        "somebody deletes it, unneeded", unneeded(ready()),
        Deleting(), heard(), Phase.RELEASING, Reason.DELETION_STARTED, (),
    ),
    # its labels were replaced
    (
        "its labels were replaced, and its Job is there", ready(hosts=BY_OWN),
        BARE, heard(), Phase.READY, Reason.LABELS_REPLACED, RELABEL,
    ),
    ("they were, and nobody is there yet", ready(), BARE, heard(), Phase.READY, Reason.LABELS_REPLACED, RELABEL),
    (
        "they were, and GKE is at work on the pool", ready(hosts=BY_OWN, relabelling=LATER),
        Busy("an update."), heard(), Phase.READY, Reason.LABELS_REPLACED, (),
    ),
    (
        "they were, and were put back moments ago", ready(hosts=BY_OWN, relabelling=LATER),
        BARE, heard(), Phase.READY, Reason.LABELS_REPLACED, (),
    ),
    ("they are there again", ready(hosts=BY_OWN, relabelling=LATER), OURS, heard(), Phase.READY, Reason.READY, ()),
    (
        "they were, while hosts join", requested(hosts=some_hosts(usable=2)),
        BARE, heard(), Phase.PROVISIONING, Reason.HOSTS_JOINING, RELABEL,
    ),
    ("they were, unneeded", unneeded(ready()), BARE, heard(), Phase.RELEASING, Reason.CLOSING_HOSTS, CLOSE),
    # Unowned
    ("not ours", requested(**JUST), Unowned("no owner label."), GRANTED, Phase.WAITING, Reason.UNOWNED_POOL, ()),
    ("not ours, unneeded", unneeded(requested(**JUST)), Unowned("no label."), heard(), Phase.GONE, Reason.RELEASED, ()),
    (
        "not proven ours, and its Job is there", ready(hosts=BY_OWN),
        Unowned("no label."), GRANTED, Phase.WAITING, Reason.UNOWNED_POOL, (),
    ),
    # Unreadable
    ("unreadable", ready(), Unreadable("503"), GRANTED, Phase.READY, Reason.POOL_UNREADABLE, ()),
    ("unreadable, unneeded", unneeded(ready()), Unreadable("503"), heard(), Phase.READY, Reason.POOL_UNREADABLE, ()),
]  # fmt: skip

CLOSED = some_hosts(usable=0, closed=4, asked=asked_to_close(), answered=1)
KEY = requested().key
GOES: dict[str, Any] = {"let_go": "nobody used it for 15 minutes", "phase": Phase.RELEASING, "hosts": CLOSED}
"""Of a claim whose slice goes."""
GOING: list[Row] = [
    # a claim whose slice goes
    (
        "its slice goes, and its leader waits", requested(**GOES, **WAITS),
        OURS, GRANTED, Phase.PROVISIONING, Reason.HOSTS_JOINING, (OpenHosts(1, 2, KEY),),
    ),
    (
        "its slice goes, whose hosts are still open, and its leader waits",
        requested(**{**GOES, "hosts": replace(CLOSED, usable=4, closed=0)}, **WAITS),
        OURS, GRANTED, Phase.READY, Reason.READY, (OpenHosts(1, 2, KEY),),
    ),
    (
        "its slice goes, and its Job came to it", requested(**{**GOES, "hosts": BY_OWN}),
        OURS, heard(), Phase.READY, Reason.READY, (),
    ),
    (
        "its slice goes, and others came to it while its leader waits",
        requested(**{**GOES, "hosts": BY_GUEST}, **WAITS),
        OURS, GRANTED, Phase.PROVISIONING, Reason.CREATION_STARTED, CREATE_NEXT,
    ),
    (
        "its slice is being deleted, and its leader waits", requested(**GOES, **WAITS, delete_requested_at=NOW),
        Deleting(), GRANTED, Phase.PROVISIONING, Reason.CREATION_STARTED, CREATE_NEXT,
    ),
    (
        "its slice goes, and cannot be read while its leader waits", requested(**GOES, **WAITS),
        Unreadable("503"), GRANTED, Phase.RELEASING, Reason.POOL_UNREADABLE, (),
    ),
    (
        "its slice is being deleted, and cannot be read while its leader waits",
        requested(**GOES, **WAITS, delete_requested_at=NOW),
        Unreadable("503"), GRANTED, Phase.RELEASING, Reason.POOL_UNREADABLE, (),
    ),
    (
        "its slice goes, and nobody waits", requested(**GOES, **LATE),
        OURS, GRANTED, Phase.RELEASING, Reason.DELETION_STARTED, (DeletePool(1),),
    ),
    (
        "its slice is gone, and nobody waits", requested(**GOES, **LATE),
        Absent(), GRANTED, Phase.QUEUED, Reason.DEMAND_STALE, (),
    ),
    (
        "its slice is gone, and its leader waits", requested(**GOES, **WAITS),
        Absent(), GRANTED, Phase.PROVISIONING, Reason.CREATION_STARTED, CREATE_NEXT,
    ),
    (
        "its slice goes, unneeded", unneeded(requested(**GOES)),
        OURS, GRANTED, Phase.RELEASING, Reason.DELETION_STARTED, (DeletePool(1),),
    ),
    (
        "its slice is gone, unneeded", unneeded(requested(**GOES)),
        Absent(), heard(), Phase.GONE, Reason.RELEASED, (),
    ),
    # a claim that had slices before
    (
        "it had a slice before", a_record(attempt=2, earlier=(1,)),
        Absent(), GRANTED, Phase.PROVISIONING, Reason.CREATION_STARTED, CREATE_NEXT,
    ),
    (
        "it had a slice before, unneeded", unneeded(a_record(attempt=2, earlier=(1,))),
        Absent(), GRANTED, Phase.RELEASING, Reason.EARLIER_SLICE_STANDS, (),
    ),
    # a slice that no claim has
    (
        "no claim has it, and nobody uses it", going(),
        OURS, GRANTED, Phase.RELEASING, Reason.DELETION_STARTED, (DeletePool(1),),
    ),
    (
        "no claim has it, and its hosts are open", going(hosts=some_hosts()),
        OURS, GRANTED, Phase.RELEASING, Reason.CLOSING_HOSTS, CLOSE,
    ),
    ("no claim has it, and others use it", in_use(GUEST), OURS, GRANTED, Phase.RELEASING, Reason.OCCUPIED, ()),
    ("no slot for its deletion", going(), OURS, heard(), Phase.RELEASING, Reason.DELETION_QUEUED, ()),
    ("no claim has it, relay silent", going(), OURS, SILENT, Phase.RELEASING, Reason.RELAY_SILENT, ()),
    (
        "no claim has it, and it cannot be read", going(),
        Unreadable("503"), GRANTED, Phase.RELEASING, Reason.POOL_UNREADABLE, (),
    ),
    ("no claim has it, and it is gone", going(), Absent(), heard(), Phase.GONE, Reason.RELEASED, ()),
]  # fmt: skip

TABLE = [*ABSENT, *CREATION, *RUNNING, *OTHER, *GOING]

LET_GO: dict[str, tuple[Action, ...]] = {
    "no operation for long": CLOSE,
    "stockout": CLOSE,
    "stockout, relay silent": (),
    "permissions": CLOSE,
    "a shape that GKE never makes": CLOSE,
    "a host is missing for long": CLOSE,
    "not used for long, and its leader waits": CLOSE,
    "others on it, its Job waits": (),
    "another request, changed while suspended": CLOSE,
    "broken, unused": CLOSE,
    "somebody deletes it: a new attempt need not wait": (),
    "its slice goes, and others came to it while its leader waits": (),
    "its slice is being deleted, and its leader waits": (),
}
"""The cases in which a slice that stands leaves its claim, and what is then done about that slice."""


def decided(record: SliceRecord, found: Observation, known: Known | None = None, paused: str | None = None) -> Decision:
    return decide(record, seen(found), NOW, settings(paused=paused), known or heard())


@pytest.mark.parametrize("row", TABLE, ids=[f"{row[5]}: {row[0]}".replace(" ", "-") for row in TABLE])
def test_each_case_leads_to_its_phase_reason_and_actions(row: Row) -> None:
    _, record, found, known, *expected = row
    decision = decided(record, found, known)
    assert [decision.record.phase, decision.reason, decision.actions] == expected


@pytest.mark.parametrize("row", TABLE, ids=[row[0].replace(" ", "-") for row in TABLE])
def test_a_slice_that_stands_leaves_its_claim_in_these_cases_only_and_goes(row: Row) -> None:
    case, record, found, known, *_ = row
    decision = decided(record, found, known)
    let_go = decision.let_go
    assert (let_go is not None) is (case in LET_GO)
    if let_go is not None:
        after = decided(let_go, found, known)
        assert (after.record.phase, after.actions) == (Phase.RELEASING, LET_GO[case])


CASES = pytest.mark.parametrize(
    ("record", "found", "known"), [row[1:4] for row in TABLE], ids=[row[0] for row in TABLE]
)


@CASES
def test_a_slice_on_hold_has_no_actions(record: SliceRecord, found: Observation, known: Known) -> None:
    decision = decided(replace(record, hold=True), found, known)
    assert (decision.actions, decision.reason) == ((), Reason.HELD)
    stands = isinstance(found, Creating | Running | Busy | Broken)
    if not record.goes and stands:
        assert decision.record.reason is not Reason.HELD
    elif record.phase is not Phase.GONE and not isinstance(found, Unreadable):
        assert (decision.record.phase, decision.record.reason) == (Phase.BLOCKED, Reason.HELD)
    if record.phase is not Phase.GONE and not isinstance(found, Unreadable):
        assert decision.record.message.startswith("Held by an operator since 2026-03-01 12:00 UTC")


@CASES
def test_a_slice_in_a_paused_cluster_has_no_actions(record: SliceRecord, found: Observation, known: Known) -> None:
    decision = decided(record, found, known, paused="upgrade of the cluster, until noon.")
    assert (decision.actions, decision.reason) == ((), Reason.PAUSED)
    assert decision.message.endswith("upgrade of the cluster, until noon.")


@pytest.mark.parametrize("operation", PoolOperation)
@pytest.mark.parametrize(
    ("found", "paused", "hold"),
    [(Unreadable("503"), None, False), (Unowned("not ours"), "an upgrade", False), (Unowned("not ours"), None, True)],
    ids=["GKE does not answer", "paused", "held"],
)
def test_a_slice_in_line_that_must_not_be_changed_leaves_the_line_and_is_looked_at_again(
    operation: PoolOperation, found: Observation, paused: str | None, *, hold: bool
) -> None:
    """As one whose pool was deleted by hand, while GKE does not answer: nobody else would look at it."""
    awaited = SlotAwaited(operation=operation, attempt=1, since=NOW)
    record = requested(slot_awaited=awaited, next_reconcile_at=None, phase=Phase.QUEUED, hold=hold)
    after = decided(record, found, paused=paused).record
    assert (after.slot_awaited, after.next_reconcile_at) == (None, NOW + settings().limits.requeue_after)


@CASES
def test_a_hold_changes_nothing_but_slots_times_and_what_is_told(
    record: SliceRecord, found: Observation, known: Known
) -> None:
    """Nothing but that the name of a slice which was to go, and is gone, is used no more."""
    before = replace(record, hold=True, phase=Phase.READY)
    after = decided(before, found, known).record
    before = without_gone(Situation(before, seen(found), NOW, settings(), known)).record
    times = {"next_reconcile_at", "look_at", "slot_awaited", "held_since"}
    of_claim = {"retry_at", "failures", "blocked_settings_version", "waits_since", "setbacks", "awaited_since"}
    of_pool = {"slot", "seen", "hosts_awaited_since", "returning", "unreadable_since"}
    if isinstance(found, Absent):
        of_pool.add("create_requested_at")
    told = {"phase", "reason", "message", "since", "changed_at", "transitions", "transition_count", "usages"}
    same = {name: getattr(before, name) for name in times | told}
    current = replace(after.current, **{name: getattr(before.current, name) for name in of_pool})
    claim = replace(after.claim, **{name: getattr(before.claim, name) for name in of_claim})
    assert replace(after, current=current, claim=claim, **same) == before
    assert after.slots <= before.slots


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        pytest.param(Creating(), Reason.CREATING, id="creating"),
        pytest.param(Busy("upgrade"), Reason.READY, id="busy, all hosts are usable"),
        pytest.param(OURS, Reason.READY, id="all hosts are usable"),
        pytest.param(Broken(STOCKOUT), Reason.READY, id="broken, all hosts are usable"),
        pytest.param(Absent(), None, id="gone"),
        pytest.param(Deleting(), None, id="being deleted"),
    ],
)
@pytest.mark.parametrize("frozen", ["hold", "pause"])
def test_a_pool_that_is_seen_is_told_during_a_hold_and_a_pause(
    found: Observation, reason: Reason | None, frozen: str
) -> None:
    record = lasting(Reason.HOSTS_LOST, MINUTE, hosts=some_hosts(), hold=frozen == "hold")
    decision = decided(record, found, paused="upgrade." if frozen == "pause" else None)
    unseen = Reason.HELD if frozen == "hold" else Reason.HOSTS_LOST
    assert (decision.record.reason, decision.actions) == (reason or unseen, ())


@pytest.mark.parametrize(
    ("record", "found", "slots"),
    [
        pytest.param(requested(slot=0), OURS, set(), id="the creation ended"),
        pytest.param(requested(slot=0), Creating(), {0}, id="the creation runs"),
        pytest.param(requested(slot=0), Unreadable("503"), {0}, id="whether the creation runs is not known"),
        pytest.param(requested(slot=0), Absent(), set(), id="what was created is gone"),
        pytest.param(going(slot=3, delete_requested_at=NOW - HOUR), OURS, set(), id="the deletion ended"),
        pytest.param(going(slot=3, delete_requested_at=NOW - HOUR), Deleting(), {3}, id="the deletion runs"),
        pytest.param(
            going(slot=3, delete_requested_at=NOW - HOUR), Unreadable("503"), {3},
            id="whether the deletion runs is not known",
        ),
        pytest.param(going(slot=3, delete_requested_at=NOW - HOUR), Absent(), set(), id="what was deleted is gone"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("frozen", ["hold", "pause"])
def test_slots_of_operations_that_ended_are_freed_during_a_hold_and_a_pause(
    record: SliceRecord, found: Observation, slots: set[int], frozen: str
) -> None:
    record = replace(record, hold=frozen == "hold")
    after = decided(record, found, paused="upgrade." if frozen == "pause" else None).record
    assert after.slots == slots


@pytest.mark.parametrize(("due", "again"), [(NOW, NOW + MINUTE), (None, None)])
def test_a_slice_on_hold_is_reconciled_again_if_it_was_to_be(due: datetime | None, again: datetime | None) -> None:
    assert decided(ready(hold=True, next_reconcile_at=due), OURS).record.next_reconcile_at == again


@pytest.mark.parametrize(("minutes", "kept"), [(1, True), (60, False)])
def test_a_request_without_an_effect_is_forgotten_once_it_cannot_have_one_any_more(minutes: int, kept: bool) -> None:
    record = requested(create_requested_at=NOW - minutes * MINUTE, demand_confirmed_at=None)
    assert (decided(record, Absent(), heard()).record.current.create_requested_at is not None) is kept


def test_a_slice_blocked_by_a_pause_is_created_when_the_pause_is_over() -> None:
    paused = decided(a_record(), Absent(), paused="upgrade.").record
    assert (paused.phase, paused.next_reconcile_at) == (Phase.BLOCKED, NOW + MINUTE)
    assert decided(paused, Absent(), GRANTED).actions == CREATE


def test_the_name_of_a_slice_that_failed_is_never_used_again() -> None:
    decision = decided(requested(**JUST), Broken(STOCKOUT))
    assert (decision.record.attempt, decision.record.claim.tried, had(decision.record)) == (2, 2, (1,))
    assert decision.let_go is not None
    assert (decision.let_go.id, decision.let_go.unclaimed) == (slice_id(decision.record.maker, 1), True)


def test_a_failed_attempt_waits_longer_each_time() -> None:
    first = decided(requested(**JUST), Broken(STOCKOUT)).record
    again = decided(requested(**JUST, failures=3), Broken(STOCKOUT)).record
    assert (first.claim.retry_at, again.claim.retry_at) == (NOW + MINUTE, NOW + 8 * MINUTE)


def test_the_shape_that_gke_never_makes_is_not_requested_again_until_the_settings_change() -> None:
    refused = decided(requested(**JUST), a_failure(FailureKind.IMPOSSIBLE, "Unsupported")).record
    gone = refused.with_claim(earlier=())
    assert decided(gone, Absent(), GRANTED).actions == ()
    later = decide(gone, seen(Absent()), NOW, settings(version="settings-2"), GRANTED)
    assert later.actions == CREATE_NEXT
    assert later.record.claim.rejection is None


def test_settings_are_pinned_at_the_first_create_and_kept() -> None:
    first = decided(a_record(), Absent(), GRANTED).record
    assert first.pinned_settings == settings().pools
    edited = settings(pools=replace(settings().pools, boot_disk_gb=500))
    assert decide(first, seen(Absent()), NOW, edited).record.pinned_settings == first.pinned_settings


def test_the_next_attempt_uses_the_settings_of_its_time() -> None:
    first = decided(a_record(), Absent(), GRANTED).record
    failed = decided(first, Broken(STOCKOUT)).record
    edited = settings(pools=replace(settings().pools, boot_disk_gb=500))
    second = decide(failed, seen(Absent()), NOW + 5 * MINUTE, edited, GRANTED).record
    assert second.pinned_settings == edited.pools


def test_a_slot_is_held_until_the_creation_ends() -> None:
    held = {"current": requested(**JUST), "queued": a_record(slot=0)}
    assert decided(held["current"], Creating()).record.slots == {0}
    assert decided(held["current"], Unreadable("503")).record.slots == {0}
    assert decided(held["current"], OURS).record.slots == set()
    assert decided(held["current"], Broken(STOCKOUT)).record.slots == set()
    assert decided(requested(slot=0, **LATE), Absent()).record.slots == set()


def test_a_creation_that_waits_for_a_slot_keeps_its_place() -> None:
    queued = decided(a_record(), Absent()).record
    expected = SlotAwaited(operation=PoolOperation.CREATE, attempt=1, since=NOW)
    assert queued.slot_awaited == expected
    assert decide(queued, seen(Absent()), NOW + MINUTE, settings(), heard()).record.slot_awaited == expected
    assert decided(queued, Absent(), GRANTED).record.slot_awaited is None


def test_a_deletion_and_the_creation_beside_it_wait_each_for_a_slot() -> None:
    claim = a_record(attempt=2, earlier=(1,))
    deletion = decided(going(), OURS).record
    assert deletion.slot_awaited == SlotAwaited(operation=PoolOperation.DELETE, attempt=1, since=NOW)
    deleted = decided(deletion, OURS, heard(slots={1: 4}))
    assert (deleted.actions, deleted.record.slot_awaited) == ((DeletePool(1),), None)
    creation = decided(claim, Absent(), heard(slots={1: 4}))
    assert (creation.actions, creation.reason) == ((), Reason.OPERATION_LIMIT)
    expected = SlotAwaited(operation=PoolOperation.CREATE, attempt=2, since=NOW)
    assert creation.record.slot_awaited == expected


def test_a_slot_that_was_handed_on_to_a_deletion_and_taken_for_a_creation_is_used_once() -> None:
    handed_on = SlotAwaited(operation=PoolOperation.DELETE, attempt=1, since=NOW, number=4)
    record = requested(**{**GOES, "hosts": BY_GUEST}, **WAITS, slot_awaited=handed_on)
    after = decided(record, OURS, heard(slots={2: 4}))
    assert (after.actions, after.record.slot_awaited) == (CREATE_NEXT, None)
    assert after.record.slots == {4}
    assert after.let_go is not None
    assert not after.let_go.slots


def test_a_gone_slice_in_demand_again_gets_the_next_attempts_name() -> None:
    closing = decided(unneeded(ready()), OURS).record
    hosts = closing.current.hosts
    deleting = decided(with_hosts(closing, usable=0, closed=4, answered=hosts.highest), OURS, GRANTED)
    assert deleting.actions == (DeletePool(1),)
    gone = decide(deleting.record, seen(Absent()), NOW + MINUTE, settings()).record
    assert (gone.phase, gone.expire_at) == (Phase.GONE, NOW + MINUTE + settings().limits.gone_ttl)
    again = with_fields(gone, desire=Desire.PRESENT, demand_confirmed_at=NOW)
    back = decide(again, seen(Absent()), NOW + 2 * MINUTE, settings(), GRANTED)
    assert back.actions == CREATE_NEXT
    assert back.record.expire_at is None


def test_a_slice_that_was_ready_is_not_rebuilt_for_a_spec_that_only_settings_changed() -> None:
    record = ready(spec=a_spec(boot_disk="hyperdisk-balanced"), rebuild_allowed=True)
    assert decided(record, OURS).reason is Reason.READY
