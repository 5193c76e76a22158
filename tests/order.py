"""The order of the tests' files: random, but those that wait for processes come first.

A run ends when its last file does: the others are short, and fill what is left of each processor's time.
"""

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("emulators") is None)
