"""What `slices explain`, `slices list` and `slices doctor` say of reservations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.builders import NOW, a_request
from tests.cli.stage import Stage
from tests.journeys.reservations.waiting import HALL, HOUR, a_world, appear, creations, of_everyone
from tests.world import World
from tpu_slices.domain.model.capacity import EXPECTED_DURATION
from tpu_slices.domain.model.reasons import Reason
from tpu_slices_simulator.fakes.reservations import FakeReservation


def test_explain_says_what_is_known_and_when_it_is_looked_at_next() -> None:
    world = a_world(FakeReservation(name=HALL, hosts=16, others=16))
    appear(world, 1)
    world.settle(minutes=3)
    text = Stage(world).output_of("explain", "research/job-0-slice-0")
    assert (
        "Reservation hall-7: READY, 16 of 16 hosts used, 0 of them by slices of this cluster; seen at 12:03 UTC, "
        "it is looked at again at 12:04 UTC"
    ) in text
    assert "Decision    QUEUED, ReservationNotOpen: The reservation hall-7 has no free hosts" in text


def test_explain_says_in_how_long_a_booking_begins() -> None:
    world = a_world(FakeReservation(name=HALL, hosts=16, starts_at=NOW + 13 * HOUR, ends_at=NOW + 40 * HOUR))
    appear(world, 1)
    world.settle(minutes=3)
    text = Stage(world).output_of("explain", "research/job-0-slice-0")
    assert "PENDING, begins at 01:00 UTC on 2 March (in 13 h), ends at 04:00 UTC on 3 March" in text


def planned(world: World, *more: str, expected: str = "") -> str:
    manifest = yaml.safe_load(Path("examples/v6e-spot.yaml").read_text(encoding="utf-8"))
    pods = manifest["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    del pods["nodeSelector"]["cloud.google.com/gke-spot"]
    pods["nodeSelector"]["cloud.google.com/reservation-name"] = HALL
    manifest["metadata"]["annotations"] |= {EXPECTED_DURATION: expected} if expected else {}
    result = Stage(world).slices(
        "plan", "-f", "-", "--cluster", "demo", "-n", "research", *more, input=yaml.safe_dump(manifest)
    )
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_plan_for_a_cluster_says_what_its_reservation_has() -> None:
    world = a_world(FakeReservation(name=HALL, hosts=16, others=4, ends_at=NOW + 40 * HOUR))
    assert "hall-7 has" not in planned(world)
    appear(world, 1)
    world.settle(minutes=3)
    assert (
        "JobSet v6e-spot, replicatedJob workers: The reservation hall-7 has 8 free hosts of 16; 2 slices need 8. "
        "It ends at 04:00 UTC on 3 March. Seen at "
    ) in planned(world)
    (told,) = json.loads(planned(world, "-o", "json"))["reservations"]
    assert (told["state"], told["hosts"], told["free_hosts"], told["needed_hosts"]) == ("READY", 16, 8, 8)
    assert told["rung"] is None


def test_a_plan_says_that_a_reservation_is_full_or_begins_later() -> None:
    full = a_world(FakeReservation(name=HALL, hosts=16, others=16))
    later = a_world(FakeReservation(name=HALL, hosts=16, starts_at=NOW + 13 * HOUR, ends_at=NOW + 40 * HOUR))
    for world in (full, later):
        appear(world, 1)
        world.settle(minutes=3)
    assert "workers: The reservation hall-7 has no free hosts: 16 of 16 used, 16 of them outside" in planned(full)
    assert "workers: Waits for reservation hall-7, which begins at 01:00 UTC on 2 March. Seen at" in planned(later)


def running_for(world: World, lasts: str) -> None:
    """Let a JobSet appear that says how long it runs."""
    selector = (*a_request().node_selector, ("cloud.google.com/reservation-name", HALL))
    says = ((EXPECTED_DURATION, lasts),)
    request = a_request(replicas=1, node_selector=selector, requested_annotations=says)
    world.jobset_appears("timed", request=request)


def told_of_the_end(world: World) -> list[str]:
    return [
        each.transition.message for each in world.publisher.updates if each.transition.reason is Reason.RESERVATION_ENDS
    ]


def test_who_would_not_be_done_before_the_end_is_told_so_before_anything_is_bought() -> None:
    world = a_world(FakeReservation(name=HALL, hosts=16, ends_at=NOW + 40 * HOUR))
    running_for(world, "2d")
    world.settle(minutes=2)
    (told, *_) = told_of_the_end(world)
    assert told == (
        "The reservation hall-7 ends at 04:00 UTC on 3 March (in 40 h), and the Job is to run for 2 days: Google "
        "deletes its hosts before it is done."
    )
    assert len(creations(world)) == 1


def test_who_is_done_before_the_end_or_does_not_say_is_told_nothing() -> None:
    world = a_world(FakeReservation(name=HALL, hosts=16, ends_at=NOW + 40 * HOUR))
    appear(world, 1)
    running_for(world, "12h")
    world.settle(minutes=5)
    assert len(creations(world)) == 2
    assert told_of_the_end(world) == []


def test_a_plan_says_that_a_job_outlasts_its_reservation() -> None:
    world = a_world(FakeReservation(name=HALL, hosts=16, ends_at=NOW + 40 * HOUR))
    appear(world, 1)
    world.settle(minutes=3)
    assert "Google deletes its hosts before it is done. Seen at" in planned(world, expected="2d")
    assert "before it is done" not in planned(world, expected="12h")


def test_the_list_and_the_report_have_the_reason() -> None:
    world = a_world(FakeReservation(name=HALL, hosts=16, others=16))
    appear(world, 1)
    world.settle(minutes=3)
    stage = Stage(world)
    assert "ReservationNotOpen" in stage.output_of("list")
    assert "The reservation hall-7 has no free hosts: 16 of 16 used" in stage.output_of("explain", "research/job-0")


def test_doctor_says_which_reservation_cannot_be_read_and_that_nothing_fails_for_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(of_cluster=of_everyone())
    appear(world, 1)
    world.settle(minutes=5)
    monkeypatch.setattr("tpu_slices_cli.doctor.sleep", lambda _: world.settle(minutes=1))
    text = Stage(world).output_of("doctor")
    assert (
        "ok      The reservation hall-7 of project demo-project cannot be read: needs compute.reservations.get. "
        "Creations in it are tried without knowing its room."
    ) in text
