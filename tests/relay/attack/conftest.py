from collections.abc import Iterator

import pytest

from tests.local.served import Served, serving
from tests.relay.attack.bed import Bed


@pytest.fixture(scope="module")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One API server for the tests of a module; `bed` restores it after each."""
    with serving(tmp_path_factory.mktemp("cluster"), "--bookmark-seconds", "0.2") as served:
        yield served


@pytest.fixture
def bed(api_server: Served) -> Iterator[Bed]:
    with Bed.made(api_server) as made:
        yield made
