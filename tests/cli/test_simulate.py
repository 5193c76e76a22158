"""`slices simulate`: what it tells of the stories in examples/stories, and of files that are no stories."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from tests.cli.reading import Reader
from tests.infra.sources import ROOT
from tpu_slices_cli.app import main
from tpu_slices_simulator.form import FaultForm, JobSetForm, ReservationForm, StoryForm
from tpu_slices_simulator.story import Kind

STORIES = ROOT / "examples" / "stories"
SHORT: dict[str, Any] = {
    "cluster": str(ROOT / "examples" / "clusters" / "research.yaml"),
    "lasts": "90m",
    "jobsets": [{"manifest": str(ROOT / "examples" / "v4.yaml"), "runs": "20m"}],
}
OUT_OF_STOCK = {"what": "stockout", "lasts": "90m"}


def slices(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["simulate", *map(str, arguments)])


def told(*arguments: str | Path) -> dict[str, Any]:
    result = slices(*arguments, "-o", "json")
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def written(folder: Path, **changes: Any) -> Path:
    file = folder / "story.yaml"
    file.write_text(yaml.safe_dump({**SHORT, **changes}))
    return file


@pytest.mark.slow
def test_who_comes_while_a_zone_is_out_of_stock_waits_for_its_end_and_then_runs() -> None:
    found = told(STORIES / "zone-out-for-six-hours.yaml")
    before, *during = found["workloads"]
    assert (before["state"], before["ran"]) == ("COMPLETED", 180)
    assert [each["state"] for each in during] == ["COMPLETED"] * 4
    for each in during:
        assert each["served_at"] > 7 * 60, "GKE had nothing until then"
        assert set(each["waited"]) & {"Stockout", "BackingOff", "CreationFailed", "RetryAfterFailure"}, each["waited"]
    assert found["chip_hours"]["useful"] >= 3 * 32 + 4 * 1.5 * 8


@pytest.mark.slow
def test_who_has_a_ladder_does_not_wait_for_spot_and_who_has_none_does() -> None:
    found = told(STORIES / "out-of-spot-with-ladder.yaml")
    assert {how for each in found["workloads"] for how in each["where"]} == {"flex-start in us-east5-b"}
    assert all(each["served_at"] <= 2 * 60 for each in found["workloads"])
    assert found["creations"]["failed"] <= 8, (
        "the first five attempts, and one for each time that the shortage is forgotten"
    )
    without = told(STORIES / "out-of-spot-without-ladder.yaml")
    assert all(each["served_at"] > 6 * 60 for each in without["workloads"])
    assert {how for each in without["workloads"] for how in each["where"]} == {"spot in us-east5-b"}


@pytest.mark.slow
def test_nothing_is_created_before_a_reservation_begins_and_its_hosts_serve_all(tmp_path: Path) -> None:
    """The story as it is takes half a minute: here its reservation begins after three hours."""
    story = yaml.safe_load((STORIES / "reservation-tomorrow.yaml").read_text())
    (jobsets,) = story["jobsets"]
    fewer = {**jobsets, "manifest": str(STORIES / jobsets["manifest"]), "copies": 6}
    hall = {**story["reservations"][0], "hosts": 8, "begins": "3h", "ends": "9h"}
    changes = {**story, "cluster": str(STORIES / story["cluster"]), "jobsets": [fewer], "lasts": "9h"}
    found = told(written(tmp_path, **{**changes, "reservations": [hall]}))
    served = [each["served_at"] for each in found["workloads"]]
    assert all(3 * 60 < at <= 3 * 60 + 15 for at in served[:4]), served
    assert all(5 * 60 < at < 6 * 60 for at in served[4:]), served
    assert found["creations"] == {"tried": 4, "failed": 0}, "and two slices were handed on"


def test_the_hosts_of_a_reservation_go_with_it(tmp_path: Path) -> None:
    reserved = {"manifest": str(ROOT / "examples" / "v5p-reserved.yaml")}
    hall = {"name": "hall-7", "hosts": 2, "ends": "40m"}
    (found,) = told(written(tmp_path, jobsets=[reserved], reservations=[hall]))["workloads"]
    assert found["ran"] < 40
    assert found["waited"]["ReservationNotOpen"] > 0
    assert "ended" in found["message"]


def test_slices_of_fewer_hosts_than_are_short_are_made(tmp_path: Path) -> None:
    short = {**OUT_OF_STOCK, "hosts": 4}
    assert slices(written(tmp_path, faults=[short])).exit_code == 0
    assert slices(written(tmp_path, faults=[{**short, "hosts": 2}])).exit_code == 3


@pytest.mark.slow
def test_a_cluster_s_limit_of_chips_holds_and_everybody_runs() -> None:
    found = told(STORIES / "more-than-the-limit.yaml")
    served = [each["served_at"] for each in found["workloads"]]
    assert None not in served
    assert max(served) >= 3 * 120, "four at a time, for two hours each"
    assert all("ChipLimitReached" in each["waited"] for each in found["workloads"][4:])


@pytest.mark.slow
def test_short_jobs_wait_for_less_where_slices_are_kept_warm(tmp_path: Path) -> None:
    """The stories as they are take a minute each: here with 20 Jobs."""
    waits = {}
    for name in ("warm", "cold"):
        story = yaml.safe_load((STORIES / f"short-jobs-{name}.yaml").read_text())
        fewer = [{**each, "manifest": str(STORIES / each["manifest"]), "copies": 20} for each in story["jobsets"]]
        changes = {**story, "cluster": str(STORIES / story["cluster"]), "jobsets": fewer, "lasts": "2h"}
        found = told(written(tmp_path, **changes))
        waits[name] = [each["served_at"] - each["created_at"] for each in found["workloads"]]
    assert sum(waits["warm"][5:]) / 15 <= 3, "minutes, and the world lives by the minute"
    assert sum(waits["warm"]) < sum(waits["cold"])


def shortened(folder: Path, name: str, jobsets: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return what is told of a story of the examples with fewer JobSets, or shorter ones."""
    story = yaml.safe_load((STORIES / f"{name}.yaml").read_text())
    fewer = [{**each, **jobsets, "manifest": str(STORIES / each["manifest"])} for each in story["jobsets"]]
    cluster = str(STORIES / story["cluster"])
    return told(written(folder, **{**story, "cluster": cluster, "jobsets": fewer, **changes}))


@pytest.mark.slow
def test_who_gets_a_spare_waits_for_no_hosts_and_the_spares_that_nobody_got_are_counted(tmp_path: Path) -> None:
    found = shortened(tmp_path, "spares", {"at": "30m", "copies": 2, "every": "30m"}, lasts="105m")
    waits = [each["served_at"] - each["created_at"] for each in found["workloads"]]
    assert max(waits) <= 3, "minutes, and hosts take ten"
    assert found["spares"]["slices"] == 5
    assert found["spares"]["chip_hours"]["useful"] == 0
    of_workloads = sum(each["chip_hours"]["held"] for each in found["workloads"])
    assert found["chip_hours"]["held"] == pytest.approx(of_workloads + found["spares"]["chip_hours"]["held"], abs=0.2)


@pytest.mark.slow
def test_gangs_that_have_no_room_beside_each_other_begin_one_after_the_other_as_a_whole(tmp_path: Path) -> None:
    found = shortened(tmp_path, "gangs-in-turn", {"runs": "20m"}, lasts="150m")
    served, ended = ([each[when] for each in found["workloads"]] for when in ("served_at", "ended_at"))
    assert all(end <= begin for end, begin in zip(ended, served[1:], strict=False))
    assert all("AwaitingGang" in each["waited"] for each in found["workloads"][1:])
    assert found["creations"] == {"tried": 6, "failed": 0}, "nobody holds one slice of two"


@pytest.mark.slow
def test_everybody_runs_to_the_end_on_a_bad_day() -> None:
    found = told(STORIES / "a-bad-day.yaml")
    assert [(each["state"], each["ran"]) for each in found["workloads"]] == [("COMPLETED", 360)] * 3


def test_a_jobset_that_never_gets_its_slices_makes_exit_code_3_and_says_why(tmp_path: Path) -> None:
    story = written(tmp_path, faults=[OUT_OF_STOCK])
    result = slices(story)
    assert result.exit_code == 3
    assert "never got all of its slices" in result.stdout
    assert "default/v4 waited: " in result.stdout
    assert "GCE_STOCKOUT" in result.stdout
    assert told(story)["workloads"][0]["served_at"] is None


def test_a_story_that_says_nothing_of_a_zone_is_not_about_it(tmp_path: Path) -> None:
    result = slices(written(tmp_path, faults=[{**OUT_OF_STOCK, "zones": ["us-central1-a"]}]))
    assert result.exit_code == 0, result.output


def test_the_same_story_is_told_alike(tmp_path: Path) -> None:
    story = written(tmp_path, seed=7, faults=[{"what": "messages lost", "lasts": "1h", "share": "30%"}])
    assert told(story) == told(story)


@pytest.mark.slow
def test_the_timeline_is_written_as_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert slices(written(tmp_path), "--timeline", page).exit_code == 0
    assert "simulated: story.yaml" in page.read_text()
    result = slices(written(tmp_path), "--timeline", tmp_path / "nowhere" / "page.html")
    assert "No such file or directory" in result.stderr


@pytest.mark.slow
def test_the_page_has_the_numbers_that_the_simulation_tells(tmp_path: Path) -> None:
    page, faults = tmp_path / "page.html", [{**OUT_OF_STOCK, "lasts": "30m"}]
    story = written(tmp_path, lasts="4h", faults=faults)
    result = slices(story, "--timeline", page)
    (total,) = [row for row in Reader(page.read_text()).rows if row[0] == "Total"]
    *_, useful, held, share, price = total
    assert f"{held} chip-hours held, {share} of them useful" in result.stdout
    assert told(story)["chip_hours"] == {"held": float(held), "useful": float(useful)}
    assert price == f"{told(story)['usd']:,.2f} USD"
    assert float(held) > 0


def test_what_a_jobset_may_do_besides_running(tmp_path: Path) -> None:
    manifest = SHORT["jobsets"][0]["manifest"]
    story = written(
        tmp_path,
        jobsets=[
            {"manifest": manifest, "name": "paused", "runs": "20m", "suspended": [["20m", "40m"]]},
            {"manifest": manifest, "name": "deleted", "deleted_at": "30m"},
            {"manifest": manifest, "name": "stays"},
        ],
    )
    paused, deleted, stays = told(story)["workloads"]
    assert (paused["state"], paused["ended_at"] > 50) == ("COMPLETED", True)
    assert (deleted["state"], deleted["ended_at"]) == ("DELETED", 31)
    assert (stays["state"], stays["ended_at"]) == ("ACTIVE", None)


@pytest.mark.parametrize("manifest", ["leader-worker-set.yaml", "indexed-job.yaml", "flex-start.yaml"])
def test_every_kind_of_workload_can_be_simulated(tmp_path: Path, manifest: str) -> None:
    jobsets = [{"manifest": str(ROOT / "examples" / manifest)}]
    result = slices(written(tmp_path, jobsets=jobsets))
    assert result.exit_code == 0, result.output


def test_a_leader_worker_set_runs_as_long_as_it_needs_and_is_deleted(tmp_path: Path) -> None:
    (groups,) = told(written(tmp_path, jobsets=[{"manifest": GROUPS, "runs": "20m"}]))["workloads"]
    assert (groups["state"], groups["ended_at"] > 20) == ("DELETED", True)


GROUPS = str(ROOT / "examples" / "leader-worker-set.yaml")
SUSPENDED_GROUPS = {"manifest": GROUPS, "suspended": [["10m", "20m"]]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lasts": "soon"}, "lasts: Value error, 'soon' is not a duration"),
        ({"faults": [{"what": "rain", "lasts": "1h"}]}, "faults.0.what: Value error, write one of: "),
        ({"faults": [{"what": "hosts die", "lasts": "1h"}]}, 'share: is needed for "hosts die"'),
        ({"faults": [{"what": "relay down", "lasts": "1h", "zones": ["z"]}]}, "zones: only "),
        ({"faults": [{"what": "relay down", "lasts": "1h", "capacity": "spot"}]}, "capacity: only of "),
        ({"faults": [{**OUT_OF_STOCK, "capacity": "gold"}]}, "write one of: flex-start, on-demand, reservation, spot"),
        ({"reservations": [{"name": "hall-7", "hosts": 2, "others": 3}]}, "others: at most as many as it has hosts"),
        ({"reservations": [{"name": "hall-7", "hosts": 2, "begins": "2h", "ends": "1h"}]}, "ends: after it begins"),
        ({"reservations": [{"name": "hall-7", "hosts": 2}] * 2}, "reservations: hall-7 is there twice"),
        ({"jobsets": []}, "jobsets: "),
        ({"jobsets": [{"manifest": "none.yaml"}]}, "none.yaml: cannot be read: No such file or directory"),
        ({"jobsets": [{**SHORT["jobsets"][0], "at": "2h"}]}, "jobsets.0.at: the story has ended then"),
        ({"jobsets": SHORT["jobsets"] * 2}, "default/v4 is there twice: set name or copies"),
        ({"creation": ["5m", "1m"]}, "creation, deletion, stockout: write the shorter time first"),
        ({"cluster": "none.yaml"}, "none.yaml: cannot be read"),
        ({"speed": 2}, "speed: "),
        ({"jobsets": [SUSPENDED_GROUPS]}, "jobsets.0.suspended: a LeaderWorkerSet cannot be suspended"),
    ],
)
def test_what_is_no_story_is_refused_with_the_field(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    result = slices(written(tmp_path, **changes))
    assert (result.exit_code, message in result.stderr) == (2, True), result.stderr


@pytest.mark.parametrize("text", ["- a list", "a: [", "\x00"])
def test_a_file_that_is_no_map_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "story.yaml"
    file.write_text(text)
    assert slices(file).exit_code == 2


def test_a_file_without_a_workload_is_refused(tmp_path: Path) -> None:
    (tmp_path / "queue.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    result = slices(written(tmp_path, jobsets=[{"manifest": "queue.yaml"}]))
    assert result.exit_code == 2
    assert "queue.yaml has no workload that gets slices" in result.stderr


def test_the_page_has_every_field_and_every_kind_of_fault() -> None:
    page = (ROOT / "docs" / "simulation.md").read_text()
    fields = {name for form in (StoryForm, JobSetForm, FaultForm, ReservationForm) for name in form.model_fields}
    told = set(re.findall(r"`([^`\n]+)`", page))
    assert {*fields, *map(str, Kind)} <= told


@pytest.mark.slow
def test_the_story_of_the_page_can_be_played(tmp_path: Path) -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "simulation.md").read_text(), re.DOTALL)
    told_there = yaml.safe_load(text)
    jobsets = [{**each, "manifest": str(STORIES / each["manifest"])} for each in told_there["jobsets"]]
    story = {**told_there, "cluster": str(STORIES / told_there["cluster"]), "jobsets": jobsets}
    assert slices(written(tmp_path, **story)).exit_code == 0
