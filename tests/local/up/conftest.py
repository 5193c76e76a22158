"""One running stack per test module."""

from collections.abc import Iterator

import pytest

from tests.local.up.terminal import Terminal, stack_up
from tpu_standins.prerequisites import Tools


@pytest.fixture(scope="module")
def terminal(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    assert tools.java.exists()
    with stack_up(tmp_path_factory.mktemp("up")) as terminal:
        yield terminal
