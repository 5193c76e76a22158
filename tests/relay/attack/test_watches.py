"""What an open watch delivers, or does not."""

import random
from collections import deque
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from urllib3.connectionpool import HTTPConnectionPool
from urllib3.exceptions import ReadTimeoutError

from relay import __main__, translate
from relay.objects import Kind, Known
from relay.settings import Settings
from relay.watch import Patience, Source, Watch, WatchLost
from tests.relay.attack.bed import Bed, names
from tests.relay.attack.scripted import BOOKMARK, Scripted, nodes, refusal
from tests.relay.recorder import Recorder
from tpu_standins.kubeconfig import Endpoint, kubeconfig
from tpu_standins.testing.waiting import beside

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]


def test_watches_that_are_closed_repeatedly_lose_nothing_without_a_relist(bed: Bed) -> None:
    bed.create(0)
    with bed.watching() as recorder:
        for number in (1, 2, 3):
            signs = recorder.signs
            recorder.until(lambda signs=signs: recorder.signs > signs)  # type: ignore[misc]  # a bound default
            assert bed.press("close-watches") == 1
            bed.create(number)
        recorder.until(lambda: sorted(recorder.present) == names(0, 1, 2, 3))
    assert recorder.lists == [names(0)]


class Dripping:
    """A response and a clock: each read returns the same bytes and takes ten seconds."""

    data = b'{"metadata": {"resourceVersion": "7"}, "items": null}'

    def __init__(self, said: bytes) -> None:
        self._said = said
        self.now = 0.0

    def read1(self, amt: int | None = None) -> bytes:
        assert amt
        self.now += 10
        return self._said

    def shutdown(self) -> None:
        raise ValueError("nothing to shut down")

    def close(self) -> None:
        """Close nothing."""


@pytest.mark.parametrize("said", [b"x", b""], ids=["sends bytes", "ends at once"])
def test_a_watch_that_never_sends_an_event_is_given_up_and_relisted(said: bytes) -> None:
    drip, recorder = Dripping(said), Recorder()
    source: Source[Kind, Known] = Source(Kind.HOSTS, lambda **_: drip, translate.host, "name", "nodes")
    one = Watch(source, recorder.put, Patience(90, lambda: drip.now, 0.01), random.Random(3))
    with beside(one.run, one.stop):
        recorder.until(lambda: len(recorder.lists) >= 2)
    assert recorder.failures[0] == "WatchLost: no event for 100 s"


def test_after_a_silent_watch_one_more_list_is_enough() -> None:
    scripted = Scripted(nodes(0, 1), watches=deque([ReadTimeoutError(HTTPConnectionPool("nodes"), "/", "silent")]))
    with scripted.watching() as recorder:
        recorder.until(lambda: recorder.signs >= 1)
    assert recorder.lists == [names(0, 1), names(0, 1)]
    assert len(recorder.failures) == 1


def test_a_watch_is_as_patient_as_the_setting_says_and_so_is_the_probe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drip = Dripping(b"x")
    read_within: list[float] = []

    def fetch(*, watch: bool = False, _request_timeout: tuple[float, float], **_: object) -> Dripping:
        if watch:
            read_within.append(_request_timeout[1])
        return drip

    monkeypatch.setattr(__main__, "time", SimpleNamespace(monotonic=lambda: drip.now))
    (tmp_path / "kubeconfig").write_text(kubeconfig(Endpoint(address="http://localhost:1", authority=b""), {}))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    monkeypatch.setenv("PUBSUB_EMULATOR_HOST", "localhost:1")
    asked = {"CLUSTER": "demo", "GOOGLE_CLOUD_PROJECT": "demo-project", "WATCH_SILENCE_SECONDS": "35"}
    process = __main__.Process(Settings.read(asked))
    for one in process._watches:
        one._source = replace(one._source, fetch=fetch)
        version = one.list_all()
        with pytest.raises(WatchLost, match="no event for 40 s"):
            deque(one.events(version), maxlen=0)
    assert read_within == [35.0] * len(process._watches)
    process._health.bookmarked(Kind.HOSTS)
    drip.now += 35
    assert not any("no sign of life" in line for line in process._health.unready())
    drip.now += 1
    assert "hosts: no sign of life for 36 s" in process._health.unready()


def test_a_watch_whose_version_goes_back_is_relisted(bed: Bed) -> None:
    bed.create(0, 1)
    bed.delete(0)
    with bed.watching() as recorder:
        recorder.until(lambda: recorder.signs >= 1)
        assert bed.press("rewind-watches") == 1
        recorder.until(lambda: len(recorder.lists) == 2)
        bed.create(2)
        recorder.until(lambda: sorted(recorder.present) == names(1, 2))
    assert recorder.lists == [names(1), names(1)]
    assert "went back" in recorder.failures[0]


def test_a_duplicated_event_changes_nothing(bed: Bed) -> None:
    with bed.watching() as recorder:
        recorder.until(lambda: recorder.signs >= 1)
        bed.create(0)
        recorder.until(lambda: sorted(recorder.present) == names(0))
        event = f'{{"type":"MODIFIED","object":{bed.raw(0)}}}\n'
        assert bed.press("say-to-watches", text=event * 2) == 1
        bed.create(1)
        recorder.until(lambda: sorted(recorder.present) == names(0, 1))
    assert (len(recorder.lists), recorder.failures) == (1, [])


@pytest.mark.parametrize(
    "text",
    [
        '{"type":"MODIFIED","object":{"metadata":{"na\n',
        "\n",
        '{"type":"MODIFIED"}\n',
        '{"type":"MODIFIED","object":{"metadata":{}}}\n',
        '{"type":"MODIFIED","object":"node"}\n',
        '{"type":7,"object":{"metadata":{"resourceVersion":"7"}}}\n',
        '"MODIFIED"\n',
        "<html>502 Bad Gateway</html>\n",
        '{"type":"ERROR","object":null}\n',
        '{"type":"ERROR","object":{"code":410,"message":"too old"}}\n',
        '{"type":"ERROR","object":{"code":500,"message":"etcdserver: leader changed"}}\n',
        '{"type":"ERROR","object":{}}\n',
    ],
)
def test_a_line_that_is_no_event_leads_to_a_new_list(text: str) -> None:
    server = Scripted(watches=deque([BOOKMARK + text]))
    with server.watching() as recorder:
        recorder.until(lambda: len(recorder.lists) == 2 and recorder.signs == 2)
    assert len(recorder.failures) == 1


def test_what_follows_a_line_that_is_no_event_is_seen(bed: Bed) -> None:
    with bed.watching() as recorder:
        recorder.until(lambda: recorder.signs >= 1)
        bed.press("say-to-watches", text='"MODIFIED"\n')
        recorder.until(lambda: len(recorder.lists) == 2)
        bed.create(0)
        recorder.until(lambda: sorted(recorder.present) == names(0))
    assert len(recorder.failures) == 1


def test_an_event_cut_off_by_the_end_of_a_watch_is_delivered_by_the_next(bed: Bed) -> None:
    half = '{"type":"ADDED","object":{"metadata":{"name":"half'
    bed.press("answer", verb="watch", code=200, text=half, times=1)
    with bed.watching() as recorder:
        recorder.until(lambda: recorder.signs >= 1)
        bed.create(0)
        recorder.until(lambda: sorted(recorder.present) == names(0))
    assert (len(recorder.lists), recorder.failures) == (1, [])


def test_repeated_expiry_of_history_is_relisted_with_rising_pauses() -> None:
    server = Scripted(watches=deque([refusal(410, "too old resource version: 1 (2)")] * 4))
    with server.watching(first_pause=1) as recorder:
        recorder.until(lambda: recorder.signs >= 1)
    assert (len(recorder.lists), len(recorder.failures)) == (5, 4)
    assert recorder.failures[0] == "410 too old resource version: 1 (2)"
    pauses = server.pauses.seconds[:4]  # they double, and are cut by half at most
    assert all(most / 2 <= each <= most for most, each in zip((1, 2, 4, 8), pauses, strict=True)), pauses
