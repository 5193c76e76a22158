"""The proxy as a process, before an API server in memory."""

import json
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest
import yaml
from urllib3.exceptions import HTTPError as Broken

from tpu_standins.clients.api import Api
from tpu_standins.clients.errors import ApiError, Unreachable
from tpu_standins.kubeconfig import for_token_file
from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.ports import free_ports
from tpu_standins.testing.proxied import Proxied, before
from tpu_standins.testing.waiting import until
from tpu_standins.tests.proxy.origin import LISTED, Origin, serving

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Origin, Proxied]]:
    folder, origin = tmp_path_factory.mktemp("proxy"), Origin()
    with serving(origin), before(origin.kubeconfig(folder / "kubeconfig"), folder) as proxy:
        yield origin, proxy


@pytest.fixture
def origin(both: tuple[Origin, Proxied]) -> Origin:
    return both[0]


@pytest.fixture
def proxy(both: tuple[Origin, Proxied]) -> Proxied:
    return both[1]


@pytest.fixture(autouse=True)
def _anew(both: tuple[Origin, Proxied]) -> None:
    origin, proxy = both
    origin.forget()
    proxy.clear()
    until(lambda: proxy.open_watches() == 0, "the end of the watches of other tests")


@pytest.fixture
def api(proxy: Proxied) -> Iterator[Api]:
    with closing(Api.of(proxy.kubeconfig)) as one:
        yield one


class Events:
    """An open watch, read one event at a time."""

    def __init__(self, api: Api) -> None:
        query = {"watch": "true", "resourceVersion": "5"}
        self.stream = api.stream("/api/v1/pods", query, silence=PATIENCE_SECONDS)
        self._read = b""

    def next(self) -> Any:
        """Return the next event, None at the end. Raise what urllib3 raises if the connection is lost or silent."""
        while b"\n" not in self._read:
            if not (piece := self.stream.read1(65536)):
                assert not self._read
                return None
            self._read += piece
        line, _, self._read = self._read.partition(b"\n")
        return json.loads(line)


@contextmanager
def watching(api: Api) -> Iterator[Events]:
    events = Events(api)
    with closing(events.stream):
        yield events


def test_requests_and_answers_pass_as_they_are(origin: Origin, api: Api) -> None:
    made = {"metadata": {"name": "a", "namespace": "team", "annotations": {"big": "x" * 2_000_000}}}
    assert api.create("pods", made) == LISTED
    assert api.call("GET", "/api/v1/pods", query={"labelSelector": "a=b,c", "limit": "5"}) == LISTED
    (method, path, _, body), (_, listed, _, _) = origin.asked
    assert (method, path, json.loads(body)["metadata"]) == ("POST", "/api/v1/namespaces/team/pods", made["metadata"])
    assert listed == "/api/v1/pods?labelSelector=a%3Db%2Cc&limit=5"


def test_the_users_rights_are_for_who_has_the_proxys_kubeconfig_and_others_keep_their_own(
    origin: Origin, proxy: Proxied, tmp_path: Path
) -> None:
    theirs, token = tmp_path / "theirs.kubeconfig", tmp_path / "token"
    token.write_text("theirs")
    theirs.write_text(for_token_file(proxy.kubeconfig.read_text(), token))
    for kubeconfig in (proxy.kubeconfig, theirs):
        with closing(Api.of(kubeconfig)) as api:
            api.list("pods")
    assert [authorization for _, _, authorization, _ in origin.asked] == ["Bearer own", "Bearer theirs"]


def test_its_kubeconfig_is_private_and_names_the_proxy(proxy: Proxied) -> None:
    assert proxy.kubeconfig.stat().st_mode & 0o077 == 0
    assert yaml.safe_load(proxy.kubeconfig.read_text())["clusters"][0]["cluster"]["server"] == proxy.address


def test_a_fault_answers_in_place_of_the_api_server_until_it_is_cleared(
    origin: Origin, proxy: Proxied, api: Api
) -> None:
    proxy.press("answer", resource="pods", code=503, message="not now", **{"for": PATIENCE_SECONDS})
    with pytest.raises(ApiError, match="not now") as refused:
        api.list("pods")
    assert (refused.value.code, refused.value.reason, origin.asked) == (503, "ServiceUnavailable", [])
    assert api.list("nodes") == LISTED
    assert [each["message"] for each in proxy.faults()] == ["not now"]
    proxy.clear()
    assert (proxy.faults(), api.list("pods")) == ([], LISTED)


def test_a_slow_api_server_answers_later_and_by_itself(proxy: Proxied, api: Api) -> None:
    proxy.press("answer", seconds=0.1, times=1)
    began = time.monotonic()
    assert api.list("pods") == LISTED
    assert time.monotonic() - began >= 0.1


def test_a_watch_tells_each_event_when_it_happens_and_ends_with_the_api_servers(origin: Origin, api: Api) -> None:
    with watching(api) as events:
        for number in range(3):
            origin.later.put({"type": "ADDED", "number": number})
            assert events.next()["number"] == number
        origin.later.put({"type": "ADDED", "much": "x" * 300_000})
        assert len(events.next()["much"]) == 300_000
        origin.later.put(None)
        assert events.next() is None


def test_a_closed_watch_ends_and_those_of_others_go_on(origin: Origin, proxy: Proxied, api: Api) -> None:
    origin.first = ({"type": "ADDED"},)
    with watching(api) as events:
        events.next()
        assert proxy.press("close-watches", resource="nodes") == {"watches": 0}
        assert proxy.press("close-watches", resource="pods") == {"watches": 1}
        assert events.next() is None


def test_a_silent_watch_stays_open_until_faults_are_cleared(origin: Origin, proxy: Proxied, api: Api) -> None:
    with watching(api) as events:
        assert proxy.press("silence-watches") == {"watches": 1}
        origin.later.put({"type": "ADDED"})
        origin.later.put(None)
        assert events.next() is None, "the end, which comes after the event"
    with watching(api) as events:
        proxy.press("silence-watches")
        proxy.clear()
        assert events.next() is None


def test_a_rewound_watch_goes_on_with_all_there_is_in_older_versions(origin: Origin, proxy: Proxied, api: Api) -> None:
    origin.first = ({"type": "ADDED", "number": 1},)
    with watching(api) as events:
        assert events.next()["number"] == 1
        assert proxy.press("rewind-watches") == {"watches": 1}
        assert events.next()["number"] == 1
    queries = [path.partition("?")[2] for _, path, _, _ in origin.asked]
    assert queries == ["watch=true&resourceVersion=5", "watch=true&resourceVersion=0"]


def test_a_watch_says_what_it_is_told_even_half_an_event(proxy: Proxied, api: Api) -> None:
    with watching(api) as events:
        proxy.press("say-to-watches", text='{"type":')
        proxy.press("say-to-watches", text='"MODIFIED"}\n')
        assert events.next() == {"type": "MODIFIED"}


def test_a_cut_connection_is_lost_in_the_middle(origin: Origin, proxy: Proxied, api: Api) -> None:
    origin.first = ({"type": "ADDED"},)
    with watching(api) as events:
        events.next()
        assert proxy.press("cut") == {"connections": 1}
        with pytest.raises((Broken, OSError)):
            events.next()


def test_an_api_server_that_is_away_is_away_for_its_clients_and_back_when_it_is_back(tmp_path: Path) -> None:
    gone = Origin(port=free_ports(1)[0])
    kubeconfig = gone.kubeconfig(tmp_path / "gone")
    with before(kubeconfig, tmp_path) as proxy, closing(Api.of(proxy.kubeconfig)) as api:
        with pytest.raises(Unreachable):
            api.list("pods")
        with serving(gone):
            assert api.list("pods") == LISTED


def test_a_button_that_does_not_exist_is_refused_with_those_that_do(proxy: Proxied) -> None:
    with pytest.raises(HTTPError) as refused:
        proxy.press("explode")
    with refused.value:
        assert refused.value.code == 400
        assert "close-watches" in json.load(refused.value)["error"]


def test_it_ends_promptly_with_a_watch_open(origin: Origin, tmp_path: Path) -> None:
    origin.first = ({"type": "ADDED"},)
    kubeconfig = origin.kubeconfig(tmp_path / "kubeconfig")
    with before(kubeconfig, tmp_path) as proxy, closing(Api.of(proxy.kubeconfig)) as api, watching(api) as events:
        events.next()
        proxy.process.terminate()
        assert proxy.process.wait(PATIENCE_SECONDS) == 0
