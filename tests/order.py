"""The order of the tests' files: random, but those that take long come first, those of shared servers before.

A run ends when its last file does: the others are short, and fill what is left of each processor's time. The files of a
folder of SHARED have its servers in common, its fixtures of scope `package`: they run after each other in one process,
where the servers end after the last of them. Tests that wait for processes leave a third of the processors idle: two
files for each of them are tested at a time.
"""

import os
from pathlib import PurePath
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

SHARED = ("tests/cluster", "tests/examples", "tests/kubernetes")


def folder_of(nodeid: str) -> str:
    """Return the folder of SHARED in which a test is, or nothing."""
    folder = PurePath(nodeid.partition("::")[0]).parent.as_posix()
    return folder if folder in SHARED else ""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=rank)


def rank(item: pytest.Item) -> tuple[bool, str, bool]:
    folder = folder_of(item.nodeid)
    return (not folder, folder, not any(item.get_closest_marker(name) for name in ("emulators", "slow")))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Return two for each processor for `auto`; `logical`, one for each, is xdist's own to count."""
    return 2 * (os.cpu_count() or 1) if config.option.numprocesses == "auto" else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Assign each file to a process, and the files of a folder of SHARED to the same one."""
    if config.getvalue("dist") != "loadfile":
        return None
    scheduler: Any = LoadFileScheduling(config, log)
    file_of = scheduler._split_scope
    scheduler._split_scope = lambda nodeid: folder_of(nodeid) or file_of(nodeid)
    return scheduler
