"""The local API server as a process of its own, for tests that talk to it over HTTP."""

import dataclasses
from collections.abc import Iterator

import pytest

from tests.local.cluster.served import KUBECTLS, Served, serving


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The API alone, without controllers: nothing happens by itself."""
    with serving(tmp_path_factory.mktemp("cluster"), "--no-controllers", "--bookmark-seconds", "0.2") as one:
        yield one


@pytest.fixture(params=KUBECTLS, ids=lambda program: program.name)
def client(request: pytest.FixtureRequest, served: Served) -> Served:
    """The API alone, through the oldest kubectl and through the newest."""
    return dataclasses.replace(served, program=request.param)


@pytest.fixture(scope="module")
def living(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The API with the controllers."""
    with serving(tmp_path_factory.mktemp("living")) as one:
        yield one
