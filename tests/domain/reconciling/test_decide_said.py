"""What a decision says in words and numbers: each of these is what somebody reads in the console or in an Event."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.builders import MINUTE, NOW, a_jobset, a_record, an_occupant, heard, settings, some_hosts, with_fields
from tests.domain.cases import GUEST, OWN, ready, requested, seen, unneeded
from tpu_slices.domain.model.observations import Absent, Observation, Running, Unowned
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import LAST_ATTEMPT
from tpu_slices.domain.reconciling.case import Known
from tpu_slices.domain.reconciling.decide import decide
from tpu_slices.domain.reconciling.decisions import CreatePool, Decision
from tpu_slices.domain.records.attempts import Relabelling
from tpu_slices.domain.records.slices import SliceRecord


def decided(record: SliceRecord, current: Observation, known: Known | None = None) -> Decision:
    return decide(record, seen(current), NOW, settings(), known or heard())


@pytest.mark.parametrize(
    ("legacy_pool", "said"),
    [(None, "Found without a record"), ("tpu-provisioner-1", "Made by TPU Provisioner")],
)
def test_of_a_pool_that_was_found_it_is_said_who_made_it(legacy_pool: str | None, said: str) -> None:
    found = requested(attempt=0, legacy_pool=legacy_pool, hosts=replace(some_hosts(), joined=0, usable=0, sequence=0))
    assert decided(found, Running(None)).message.startswith(said)


def test_the_hosts_that_are_bought_are_counted() -> None:
    message = decided(a_record(), Absent(), heard(slots={1: 0})).message
    assert "4 x ct6e-standard-4t in us-central2-b" in message


def test_the_last_attempt_is_made_and_none_after_it() -> None:
    last = decided(a_record(attempt=LAST_ATTEMPT), Absent(), heard(slots={LAST_ATTEMPT: 0}))
    assert last.actions == (CreatePool(LAST_ATTEMPT),)
    none = decided(a_record(attempt=LAST_ATTEMPT + 1), Absent(), heard(slots={LAST_ATTEMPT + 1: 0}))
    assert (none.reason, none.actions) == (Reason.ATTEMPTS_EXHAUSTED, ())


def test_the_earlier_pools_that_a_release_waits_for_are_named() -> None:
    one, two = unneeded(a_record(attempt=2, earlier=(1,))), unneeded(a_record(attempt=3, earlier=(1, 2)))
    released = decided(one, Absent()).message
    waits = f"waiting for node pool {one.pool_of(1)}, which it had before, to go"
    assert released == f"Releasing (the JobSet completed): {waits}."
    assert f"{two.pool_of(1)} and {two.pool_of(2)}" in decided(two, Absent()).message


def test_failures_are_forgotten_when_a_slice_serves_or_is_needed_no_more() -> None:
    assert decided(ready(failures=3), Running(None)).record.claim.failures == 0
    assert decided(unneeded(a_record(failures=3)), Absent()).record.claim.failures == 0


def test_a_release_says_why_nobody_needs_it() -> None:
    known = replace(unneeded(a_record()), desire_message="the JobSet completed")
    assert decided(known, Absent()).message == "No node pool was created: the JobSet completed."
    unknown = replace(known, desire_message="")
    assert decided(unknown, Absent()).message == "No node pool was created: no longer in demand."


def test_the_first_of_those_on_a_slices_hosts_is_named() -> None:
    another = an_occupant("another")
    others = ready(hosts=some_hosts(occupants=(GUEST, another)))
    assert decided(
        others, Running(None), heard(workloads={GUEST.owner.uid: a_jobset(uid=GUEST.owner.uid)})
    ).message.startswith(f"Its hosts are used by {GUEST.owner.full_name}")


def test_hosts_are_awaited_since_the_first_that_was_missing() -> None:
    missing = some_hosts(usable=3)
    first = decided(ready(hosts=missing), Running(None)).record
    assert first.current.hosts_awaited_since == NOW
    again = decided(with_fields(first, hosts_awaited_since=NOW - MINUTE), Running(None)).record
    assert again.current.hosts_awaited_since == NOW - MINUTE
    assert (again.phase, again.reason) == (Phase.PROVISIONING, Reason.HOSTS_LOST)


REPLACED = "Somebody replaced the labels of its node pool"
LACKING = "it has no label."


def test_a_slice_without_its_labels_says_that_they_are_put_back_or_what_that_waits_for() -> None:
    bare = Running(None, lacking=LACKING)
    told = decided(ready(failures=3), bare)
    assert told.reason is Reason.LABELS_REPLACED
    assert told.message.endswith("they are put back.")
    assert told.record.claim.failures == 0
    assert decided(ready(hold=True), bare).record.message.endswith("they are put back once nothing is held any more.")


def test_a_refusal_to_put_its_labels_back_is_told_until_the_next_try() -> None:
    refused = Relabelling(lacking=LACKING, again_at=NOW + MINUTE, refused="403 no permission")
    message = decided(ready(relabelling=refused), Running(None, lacking=LACKING)).message
    assert f"tried again at {NOW + MINUTE:%H:%M} UTC: 403 no permission" in message


@pytest.mark.parametrize("lacking", ["", LACKING])
def test_beside_missing_hosts_labels_are_spoken_of_only_if_they_were_replaced(lacking: str) -> None:
    told = decided(ready(hosts=some_hosts(usable=3)), Running(None, lacking=lacking))
    assert told.reason is Reason.HOSTS_LOST
    assert (REPLACED in told.message) == bool(lacking)


def test_a_slice_that_serves_in_a_paused_cluster_says_so_as_ever() -> None:
    told = decide(ready(), seen(Running(None)), NOW, settings(paused="upgrade."), heard()).record
    assert (told.reason, told.message) == (Reason.READY, "All 4 hosts are ready and offer their chips.")


def test_a_pool_of_another_that_its_job_runs_on_is_looked_at_again_later() -> None:
    told = decided(ready(hosts=some_hosts(occupants=(OWN,))), Unowned("no owner label."))
    assert told.reason is Reason.UNOWNED_POOL
    assert told.message.endswith("Its Job runs there.")
    assert told.record.claim.retry_at == NOW + settings().limits.resync_after


def test_a_slice_whose_claim_has_no_request_on_record_is_told_as_found() -> None:
    assert decided(with_fields(ready(), spec=None), Running(None)).reason is Reason.ADOPTED
