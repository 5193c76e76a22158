from collections.abc import Iterator

import pytest

from relay import relay
from tests.cluster.servers import patient_relay
from tests.local.served import Served, serving
from tests.relay.closing import Site
from tests.relay.notices.owners import Told
from tests.relay.watched import Watched
from tpu_standins.patience import PATIENCE_SECONDS


@pytest.fixture(autouse=True, scope="module")
def patience() -> Iterator[None]:
    """Let the relay's own calls of an API server wait as long as tests do."""
    with patient_relay(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(relay, "ANSWERED_WITHIN", PATIENCE_SECONDS)
        yield


@pytest.fixture(scope="session")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One API server behind a proxy; who has changed something restores it."""
    with serving(tmp_path_factory.mktemp("cluster"), "--bookmark-seconds", "0.2") as served:
        yield served


@pytest.fixture
def watched() -> Watched:
    return Watched()


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.fixture
def told() -> Told:
    return Told()
