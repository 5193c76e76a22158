import pytest

from tests.relay.watched import Watched


@pytest.fixture
def watched() -> Watched:
    return Watched()
