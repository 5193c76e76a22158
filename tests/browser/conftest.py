"""The browser, started once per session, and timeline pages to open in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.browser.chromium import Browser, chromium
from tests.browser.stories import world_of
from tests.cli.stage import Stage
from tpu_slices.domain.records.slices import SliceRecord

Pages = Callable[[list[SliceRecord]], Path]


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    folder = tmp_path_factory.mktemp("chromium")
    with chromium(folder / "profile", folder / "log") as started:
        yield started


@pytest.fixture
def pages(tmp_path: Path) -> Pages:
    """Return a function that writes the timeline of these slices by the command."""

    def make(records: list[SliceRecord]) -> Path:
        path = tmp_path / "timeline.html"
        result = Stage(world_of(records)).slices("timeline", "--since", "6h", "-f", str(path))
        assert result.exit_code == 0, result.output
        return path

    return make
