"""What an open watch delivers, or does not."""

import random
import threading
import time

import pytest

from relay import translate
from relay.objects import Kind, Known
from relay.watch import Patience, Source, Watch
from tests.relay.attack.bed import Bed, names
from tests.relay.recorder import Recorder

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]


def test_watches_that_are_closed_repeatedly_lose_nothing_without_a_relist(bed: Bed) -> None:
    bed.create(0)
    with bed.watching() as recorder:
        for number in (1, 2, 3):
            signs = recorder.signs
            recorder.until(lambda signs=signs: recorder.signs > signs)  # type: ignore[misc]  # a bound default
            bed.press("close-watches")
            bed.create(number)
        recorder.until(lambda: sorted(recorder.present) == names(0, 1, 2, 3))
    assert recorder.lists == [names(0)]


def test_a_watch_that_always_ends_at_once_is_given_up_and_relisted(bed: Bed) -> None:
    bed.press("answer", verb="watch", code=200, text="")
    with bed.watching(silence=0.3) as recorder:
        recorder.until(lambda: len(recorder.lists) >= 2)
    assert "no event for" in recorder.failures[0]


class Dripping:
    """A response and a clock: each read returns one byte and takes ten seconds."""

    data = b'{"metadata": {"resourceVersion": "7"}, "items": null}'

    def __init__(self) -> None:
        self.now = 0.0

    def read1(self, amt: int | None = None) -> bytes:
        assert amt
        self.now += 10
        return b"x"

    def shutdown(self) -> None:
        raise ValueError("nothing to shut down")

    def close(self) -> None:
        """Close nothing."""


def test_a_watch_that_sends_bytes_but_no_event_is_given_up_and_relisted() -> None:
    drip, recorder = Dripping(), Recorder()
    source: Source[Kind, Known] = Source(Kind.HOSTS, lambda **_: drip, translate.host, "name", "nodes")
    one = Watch(source, recorder.put, Patience(90, lambda: drip.now, 0.01), random.Random(3))
    thread = threading.Thread(target=one.run)
    thread.start()
    recorder.until(lambda: len(recorder.lists) >= 2)
    one.stop()
    thread.join()
    assert recorder.failures[0] == "WatchLost: no event for 100 s"


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
        bed.press("say-to-watches", text=event * 2)
        signs = recorder.signs
        recorder.until(lambda: recorder.signs > signs)
    assert (sorted(recorder.present), recorder.failures) == (names(0), [])


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
def test_a_line_that_is_no_event_leads_to_a_new_list(bed: Bed, text: str) -> None:
    with bed.watching() as recorder:
        recorder.until(lambda: recorder.signs >= 1)
        bed.press("say-to-watches", text=text)
        recorder.until(lambda: len(recorder.lists) == 2)
        bed.create(0)
        recorder.until(lambda: sorted(recorder.present) == names(0))
    assert len(recorder.failures) == 1


def test_an_event_cut_off_by_the_end_of_a_watch_is_delivered_by_the_next(bed: Bed) -> None:
    with bed.watching() as recorder:
        recorder.until(lambda: recorder.signs >= 1)
        bed.press("say-to-watches", text='{"type":"ADDED","object":{"metadata":{"name":"half')
        bed.press("close-watches")
        bed.create(0)
        recorder.until(lambda: sorted(recorder.present) == names(0))
    assert len(recorder.lists) == 1


def test_repeated_expiry_of_history_is_relisted_with_rising_pauses(bed: Bed) -> None:
    bed.press("answer", verb="watch", code=410, message="too old resource version: 1 (2)")
    began = time.monotonic()
    with bed.watching(first_pause=0.1) as recorder:
        recorder.until(lambda: len(recorder.failures) == 4)
    assert time.monotonic() - began >= (0.1 + 0.2 + 0.4) / 2  # pauses double, and are cut by half at most
    assert len(recorder.lists) == 4
    assert recorder.failures[0] == "410 too old resource version: 1 (2)"
