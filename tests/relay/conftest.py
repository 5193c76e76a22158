import pytest

from tests.relay.closing import Site
from tests.relay.watched import Watched


@pytest.fixture
def watched() -> Watched:
    return Watched()


@pytest.fixture
def site() -> Site:
    return Site()
