"""A control plane that the tests of this folder share. A file ends what it has started beside it.

Tests have names of their own; some kill its programs, or take all that it knows."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from infra.local.kubernetes.control_plane import control_plane
from infra.local.kubernetes.programs import Programs
from infra.local.prerequisites import Tools
from infra.local.processes import Processes
from tests.cluster.servers import with_jobsets
from tests.kubernetes.cluster import USER, Cluster


@pytest.fixture(scope="package")
def cluster(programs: Programs, tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("kubernetes")
    with (
        Processes(setpriv=tools.setpriv, logs=folder / "logs", environment=os.environ) as processes,
        control_plane(programs, processes, folder, users=(USER,), extended=with_jobsets) as plane,
    ):
        yield Cluster(plane, processes, tools.kubectl)
