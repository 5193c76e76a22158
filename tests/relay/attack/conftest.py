from collections.abc import Iterator

import pytest

from tests.local.served import Served
from tests.relay.attack.bed import Bed


@pytest.fixture
def bed(api_server: Served) -> Iterator[Bed]:
    with Bed.made(api_server) as made:
        yield made
