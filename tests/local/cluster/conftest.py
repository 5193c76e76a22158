"""The local API server in its own process, for tests that access it over HTTP."""

import dataclasses
from collections.abc import Iterator

import pytest

from tests.local.cluster.served import KUBECTLS, Served, serving


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Yield the API without controllers: nothing happens by itself."""
    with serving(tmp_path_factory.mktemp("cluster"), "--no-controllers", "--bookmark-seconds", "0.2") as one:
        yield one


@pytest.fixture(params=KUBECTLS, ids=lambda program: program.name)
def client(request: pytest.FixtureRequest, served: Served) -> Served:
    """Return the API without controllers, used through the oldest and through the newest kubectl."""
    return dataclasses.replace(served, program=request.param)


@pytest.fixture(scope="module")
def living(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Yield the API with the controllers."""
    with serving(tmp_path_factory.mktemp("living")) as one:
        yield one
