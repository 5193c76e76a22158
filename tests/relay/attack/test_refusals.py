"""An API server that is overloaded, upgraded, restarted, or does not serve what is requested."""

from collections import deque

import pytest
from kubernetes import client

from relay import cluster, connection
from relay.agenda import rising_pause
from relay.connection import asked_pause, in_words
from tests.builders import an_owner
from tests.relay.attack.bed import Bed, names
from tests.relay.attack.scripted import Scripted, nodes, refusal
from tpu_slices.ports.errors import Temporary

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]


@pytest.mark.parametrize("code", [429, 500, 502, 503, 504])
@pytest.mark.parametrize("verb", ["list", "watch"])
def test_a_server_that_answers_with_an_error_is_asked_again(code: int, verb: str) -> None:
    server = Scripted(nodes(0))
    {"list": server.lists, "watch": server.watches}[verb].extend([refusal(code, "not now")] * 3)
    with server.watching() as recorder:
        recorder.until(lambda: recorder.signs >= 1)
    assert recorder.failures == [f"{code} not now"] * 3
    assert sorted(recorder.present) == names(0)


@pytest.mark.parametrize(("verb", "code"), [("list", 503), ("watch", 429)])
def test_what_follows_an_error_is_seen(bed: Bed, verb: str, code: int) -> None:
    bed.create(0)
    bed.press("answer", verb=verb, code=code, message="not now", times=3)
    with bed.watching() as recorder:
        recorder.until(lambda: recorder.signs >= 1)
        assert [why.partition(" ")[0] for why in recorder.failures] == [str(code)] * 3
        bed.create(1)
        recorder.until(lambda: sorted(recorder.present) == names(0, 1))


def test_a_watch_pauses_for_as_long_as_retry_after_says() -> None:
    refused = refusal(429, "too many requests")
    refused.headers = {"Retry-After": "7"}
    server = Scripted(lists=deque([refused]))
    with server.watching(first_pause=1) as recorder:
        recorder.until(lambda: bool(recorder.lists))
    assert recorder.failures == ["429 too many requests"]
    assert 7.5 <= server.pauses.seconds[0] <= 8


def test_a_watch_that_pauses_for_an_hour_can_be_stopped(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "LONGEST_PAUSE", 3600.0)
    bed.press("answer", verb="list", code=503, message="later", retry_after=3600)
    with bed.watching() as recorder:
        recorder.until(lambda: bool(recorder.failures))
    assert len(recorder.failures) == 1


def test_a_call_that_is_told_to_come_back_in_an_hour_fails_and_is_not_made_again(bed: Bed) -> None:
    bed.press("answer", code=429, message="later", retry_after=3600, times=3)
    with pytest.raises(Temporary, match="429"):
        cluster.Cluster(bed.api).workload(an_owner("llama", namespace="default"))
    assert [fault["times"] for fault in bed.served.proxy.faults()] == [2]


def test_a_call_whose_answer_is_cut_off_is_a_temporary_error(bed: Bed) -> None:
    bed.press("answer", resource="persistentvolumeclaims", code=200, text='{"status": {"pha', times=1)
    with pytest.raises(Temporary, match="cannot be parsed"):
        cluster.Cluster(bed.api).volume_claim("default", "data")
    bed.press("answer", resource="jobsets", code=200, text="<html>", times=1)
    with pytest.raises(Temporary, match="cannot be parsed"):
        cluster.Cluster(bed.api).workload(an_owner("llama", namespace="default"))


@pytest.mark.parametrize(
    ("retry_after", "seconds"), [("7", 7), ("3600", 30), ("9" * 400, 30), ("soon", 0), ("-1", 0), ("²", 0), ("", 0)]
)
def test_retry_after_is_limited_and_ignored_if_it_is_malformed(retry_after: str, seconds: float) -> None:
    refused = client.exceptions.ApiException(status=429)
    refused.headers = {"Retry-After": retry_after}
    assert asked_pause(refused) == seconds


def test_pauses_double_up_to_the_maximum() -> None:
    assert [rising_pause(1.0, failures) for failures in (0, 1, 2, 5, 5_000)] == [1, 2, 4, 30, 30]


def test_an_errors_text_is_one_line_of_at_most_500_characters() -> None:
    refused = client.exceptions.ApiException(status=500, reason="x\n" * 5_000)
    assert in_words(refused, "pods") == ("500 " + "x " * 5_000)[:500]


def test_an_api_that_is_not_served_is_named_in_the_error(bed: Bed) -> None:
    bed.press("answer", resource="nodes", code=404, text="404 page not found\n")
    with bed.watching() as recorder:
        recorder.until(lambda: len(recorder.failures) >= 2)
        assert recorder.failures[0] == "the API server does not serve nodes: 404 Not Found"
        bed.served.proxy.clear()
        recorder.until(lambda: bool(recorder.lists))
