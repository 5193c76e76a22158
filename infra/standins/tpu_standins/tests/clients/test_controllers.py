"""What all controllers share: rounds, Events, owners and conditions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from tpu_standins.clients.conditions import Condition, is_true, since, with_condition
from tpu_standins.clients.errors import ApiError, Unreachable, refusal
from tpu_standins.clients.events import Happening, Recorder
from tpu_standins.clients.kinds import KINDS
from tpu_standins.clients.objects import Object, Objects
from tpu_standins.clients.owners import by_controller, controlled_by
from tpu_standins.clients.rounds import each
from tpu_standins.clients.run import Program
from tpu_standins.testing.objects import START, FakeObjects

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
JOB: Object = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "work", "namespace": "team", "uid": "u", "resourceVersion": "7"},
}
FAILED = ApiError(422, "Invalid", "no")


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def objects(*names: str) -> list[Object]:
    return [{"metadata": {"name": name, "uid": name}} for name in names]


def failing(**errors: Exception) -> Callable[[Object], datetime | None]:
    def step(obj: Object) -> datetime | None:
        if error := errors.get(obj["metadata"]["name"]):
            raise error
        return NOW + seconds(len(obj["metadata"]["name"]))

    return step


def test_a_round_returns_the_earliest_time_at_which_an_object_wants_another() -> None:
    doubts: list[tuple[Object, Exception]] = []
    assert each(objects("ccc", "a"), failing(), lambda *doubt: doubts.append(doubt)) == NOW + seconds(1)
    assert doubts == []


@pytest.mark.parametrize("reason", ["NotFound", "Conflict"])
def test_what_changed_meanwhile_is_left_to_the_next_round(reason: str) -> None:
    doubts: list[tuple[Object, Exception]] = []
    step = failing(a=ApiError(409, reason, "gone"))
    assert each(objects("a", "bb"), step, lambda *doubt: doubts.append(doubt)) == NOW + seconds(2)
    assert doubts == []


@pytest.mark.parametrize("error", [FAILED, ValueError("strange"), KeyError("x")])
def test_an_object_that_cannot_be_processed_is_told_and_the_others_are_processed(error: Exception) -> None:
    doubts: list[tuple[Object, Exception]] = []
    assert each(objects("a", "bb"), failing(a=error), lambda *doubt: doubts.append(doubt)) == NOW + seconds(2)
    assert doubts == [(objects("a")[0], error)]


def test_an_error_that_passes_ends_the_round_after_all_objects() -> None:
    seen: list[str] = []

    def step(obj: Object) -> None:
        seen.append(obj["metadata"]["name"])
        raise ApiError(500, "InternalError", "failed calling webhook")

    with pytest.raises(ApiError, match="webhook"):
        each(objects("a", "b"), step, lambda *_: None)
    assert seen == ["a", "b"]


def test_silence_of_the_server_ends_the_round_at_once() -> None:
    seen: list[str] = []

    def step(obj: Object) -> None:
        seen.append(obj["metadata"]["name"])
        raise Unreachable("refused")

    with pytest.raises(Unreachable):
        each(objects("a", "b"), step, lambda *_: None)
    assert seen == ["a"]


def test_a_controller_that_fails_is_tried_again_and_the_others_go_on() -> None:
    ran: list[str] = []

    def broken(_: Objects, __: datetime, ___: None) -> datetime | None:
        raise RuntimeError("broken")

    def sound(_: Objects, now: datetime, ___: None) -> datetime | None:
        ran.append("sound")
        return now + seconds(60)

    program: Program[None] = Program([broken, sound], None, lambda: NOW)
    assert program.round(FakeObjects(), NOW) == NOW + seconds(1)
    assert ran == ["sound"]


def test_an_event_has_the_shape_of_the_newer_api() -> None:
    fake = FakeObjects()
    Recorder("jobset").record(fake, Happening(JOB, "Started", "it began"), NOW)
    (event,) = fake.stored("events")
    assert event["eventTime"] == "2026-01-01T12:00:00.000000Z"
    assert (event["action"], event["reportingComponent"], event["type"]) == ("Reconciling", "jobset", "Normal")
    assert event["involvedObject"] == {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "namespace": "team",
        "name": "work",
        "uid": "u",
        "resourceVersion": "7",
    }
    assert not {"firstTimestamp", "lastTimestamp", "source", "count", "series"} & event.keys()
    assert event["metadata"]["namespace"] == "team"


def test_a_repeat_makes_a_series_and_further_ones_write_nothing() -> None:
    fake, recorder = FakeObjects(), Recorder("jobset")
    for _ in range(5):
        recorder.record(fake, Happening(JOB, "Refused", "again", warns=True), NOW)
    (event,) = fake.stored("events")
    assert event["series"] == {"count": 2, "lastObservedTime": "2026-01-01T12:00:00.000000Z"}


@pytest.mark.parametrize("later", [NOW + timedelta(minutes=6), NOW])
def test_about_another_version_or_much_later_it_is_another_event(later: datetime) -> None:
    fake, recorder = FakeObjects(), Recorder("jobset")
    recorder.record(fake, Happening(JOB, "Refused", "again"), NOW)
    changed = JOB | {"metadata": JOB["metadata"] | {"resourceVersion": "8"}} if later == NOW else JOB
    recorder.record(fake, Happening(changed, "Refused", "again"), later)
    assert len(fake.stored("events")) == 2


def test_a_message_is_no_longer_than_the_api_takes() -> None:
    fake = FakeObjects()
    Recorder("jobset").record(fake, Happening(JOB, "Refused", "é" * 2000), NOW)
    (event,) = fake.stored("events")
    assert len(event["message"].encode()) <= 1024


def test_an_event_that_is_refused_stops_nothing_and_silence_does() -> None:
    refused = FakeObjects(refuses=lambda *_: ApiError(403, "Forbidden", "being terminated"))
    Recorder("jobset").record(refused, Happening(JOB, "Started", "it began"), NOW)
    silent = FakeObjects(refuses=lambda *_: Unreachable("refused"))
    with pytest.raises(Unreachable):
        Recorder("jobset").record(silent, Happening(JOB, "Started", "it began"), NOW)


def test_a_doubt_is_an_event_once_per_version_of_the_object() -> None:
    fake, recorder = FakeObjects(), Recorder("pod-reader")
    for _ in range(3):
        recorder.doubting(fake, NOW)(JOB, ValueError("strange"))
    (event,) = fake.stored("events")
    assert (event["reason"], event["type"]) == ("NotUnderstoodByPodReader", "Warning")
    assert event["message"] == "pod-reader cannot process this object: ValueError: strange"


def test_an_object_belongs_to_its_controller_only() -> None:
    other = controlled_by(JOB) | {"controller": False, "uid": "v"}
    owned = {"metadata": {"name": "pod", "ownerReferences": [other, controlled_by(JOB)]}}
    assert by_controller([owned, JOB]) == {"u": [owned]}


def test_a_condition_keeps_its_time_until_its_status_changes() -> None:
    first = with_condition([], Condition(type="Ready", reason="A"), START)
    second = with_condition(first, Condition(type="Ready", reason="B"), NOW)
    assert since({"status": {"conditions": second}}, "Ready") == START
    third = with_condition(second, Condition(type="Ready", status=False), NOW)
    assert since({"status": {"conditions": third}}, "Ready") == NOW
    assert not is_true({"status": {"conditions": third}}, "Ready")


def test_a_refusal_has_what_its_status_says_or_the_text_of_its_body() -> None:
    told = refusal(409, b'{"kind":"Status","reason":"Conflict","message":"modified"}')
    assert (told.code, told.reason, told.message, told.passes) == (409, "Conflict", "modified", False)
    bare = refusal(502, b"bad gateway\n")
    assert (bare.code, bare.reason, bare.message, bare.passes) == (
        502,
        "",
        "the API server answers 502: bad gateway",
        True,
    )


def test_paths_are_those_of_the_api() -> None:
    assert KINDS["pods"].path("team", "a", "status") == "/api/v1/namespaces/team/pods/a/status"
    assert KINDS["jobsets"].path() == "/apis/jobset.x-k8s.io/v1alpha2/jobsets"
    assert KINDS["nodes"].path("team", "a") == "/api/v1/nodes/a"
