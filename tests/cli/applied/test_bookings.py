"""`slices plan` shows when the slices could be booked in calendar mode, where the settings or a person ask for it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tpu_slices.adapters.bookings import RestBookings
from tpu_slices.domain.model.bookings import BookingAdvice, BookingAsked
from tpu_slices.ports.bookings import BookingAdviser
from tpu_slices.ports.clock import Clock
from tpu_slices.ports.errors import Temporary
from tpu_slices_cli.app import main
from tpu_slices_cli.session import Session
from tpu_slices_simulator.fakes.clock import FakeClock
from tpu_standins.testing.compute import World, a_state

SPOT = "examples/v6e-spot.yaml"
PATIENT = "examples/clusters/patient.yaml"
FAMILY = "VM_FAMILY_CLOUD_TPU_LITE_POD_SLICE_CT6E"
ZONES = frozenset({"us-east5-a", "us-east5-b", "us-east5-c"})


class AskedSession(Session):
    """A session whose advice comes from the stand-in of Compute Engine, or from nobody."""

    def __init__(self, world: World, adviser: BookingAdviser | None) -> None:
        super().__init__("demo-project")
        self._now, self._adviser = datetime.fromtimestamp(world.clock.now, UTC), adviser

    @cached_property
    def clock(self) -> Clock:
        return FakeClock(self._now)

    def adviser(self, project: str) -> BookingAdviser | None:
        assert project == "example-project"
        return self._adviser


class Bench:
    def __init__(self) -> None:
        self.world = World(a_state(projects=frozenset({"example-project"}), zones=ZONES))
        session = self.world.session()
        self.adviser: BookingAdviser | None = RestBookings(session, "http://compute.local/compute/v1")

    def offer(self, zone: str = "us-east5-b", chips: int = 32, **more: Any) -> None:
        self.world.press("POST", "/advice", zone=zone, vm_family=FAMILY, chips=chips, **more)

    def plan(self, *more: str, cluster: str = PATIENT) -> Result:
        session = AskedSession(self.world, self.adviser)
        arguments = ["plan", "-f", SPOT, "--cluster", cluster, *more]
        return CliRunner().invoke(main, arguments, obj=session, prog_name="slices")

    def bookings(self, *more: str, cluster: str = PATIENT) -> list[dict[str, Any]]:
        result = self.plan(*more, "-o", "json", cluster=cluster)
        assert result.exit_code == 0, result.output
        found: list[dict[str, Any]] = json.loads(result.stdout)["bookings"]
        return found


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_plan_says_when_all_slices_of_a_workload_could_be_booked(bench: Bench) -> None:
    bench.offer(starts_in=3 * 86_400)
    (booking,) = bench.bookings("--advice", "--booked-for", "7d")
    assert (booking["kind"], booking["name"], booking["accelerator"]) == ("JobSet", "v6e-spot", "tpu-v6e-slice")
    assert (booking["chips"], booking["bookable_chips"]) == (32, 32)
    assert booking["slices"] == [{"topology": "4x4", "count": 2}]
    assert (booking["zone"], booking["lasts"], booking["unknown"]) == ("us-east5-b", "7 days", None)
    starts, ends = (datetime.fromisoformat(booking[each]) for each in ("starts_at", "ends_at"))
    assert (ends - starts).days == 7


def test_people_read_when_and_where(bench: Bench) -> None:
    bench.offer()
    told = bench.plan("--advice").stdout
    assert "JobSet v6e-spot: 32 chips of tpu-v6e-slice (2 x 4x4) for 1 day could be booked from " in told
    assert "in us-east5-b" in told


def test_without_room_people_read_why(bench: Bench) -> None:
    bench.offer(chips=16)
    told = bench.plan("--advice").stdout
    assert (
        "no booking of 32 chips of tpu-v6e-slice (2 x 4x4) for 1 day is advised in us-east5 within 120 days: " in told
    )
    assert "us-east5-b has no room then" in told


def test_nothing_is_asked_unless_the_settings_or_a_person_say_so(bench: Bench, tmp_path: Path) -> None:
    assert bench.bookings() == []
    assert not bench.world.plane.calls()
    asking = tmp_path / "patient.yaml"
    asking.write_text(Path(PATIENT).read_text(encoding="utf-8") + "advice: plan\n", encoding="utf-8")
    assert len(bench.bookings(cluster=str(asking))) == 1
    assert bench.bookings("--no-advice", cluster=str(asking)) == []


def test_its_failure_changes_nothing_else(bench: Bench) -> None:
    bench.world.press("POST", "/faults", kind="permission", method="advice.calendarMode")
    result = bench.plan("--advice")
    assert result.exit_code == 0
    assert "is not known: it needs compute.advice.calendarMode" in result.stdout
    before, after = (json.loads(bench.plan(*each, "-o", "json").stdout) for each in ((), ("--advice",)))
    assert {**before, "bookings": []} == {**after, "bookings": []}


def test_after_two_failures_nothing_more_is_asked(bench: Bench) -> None:
    asked: list[BookingAsked] = []

    class Silent:
        def advise(self, booking: BookingAsked) -> BookingAdvice:
            asked.append(booking)
            raise Temporary("nobody answers")

    bench.adviser = Silent()
    session = AskedSession(bench.world, bench.adviser)
    files = ["examples/v6e-spot.yaml", "examples/v6e-one-chip.yaml", "examples/v6e-eight-chips.yaml"]
    arguments = ["plan", *(word for each in files for word in ("-f", each)), "--cluster", PATIENT, "--advice"]
    result = CliRunner().invoke(main, arguments, obj=session, prog_name="slices")
    assert len(asked) == 2
    assert "not asked after 2 failures: nobody answers" in result.stdout


def test_where_there_is_no_compute_engine_that_is_said(bench: Bench) -> None:
    bench.adviser = None
    (booking,) = bench.bookings("--advice")
    assert booking["unknown"] == "there is no Compute Engine here"


def test_advice_is_of_a_cluster(bench: Bench) -> None:
    session = AskedSession(bench.world, bench.adviser)
    result = CliRunner().invoke(main, ["plan", "-f", SPOT, "--advice"], obj=session, prog_name="slices")
    assert result.exit_code == 2
    assert "name it with --cluster" in result.stderr


@pytest.mark.parametrize("lasts", ["12h", "91d", "a week"])
def test_a_booking_lasts_1_to_90_days(bench: Bench, lasts: str) -> None:
    assert bench.plan("--advice", "--booked-for", lasts).exit_code == 2
