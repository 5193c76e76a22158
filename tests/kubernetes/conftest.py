"""A control plane that the tests of this folder share, empty for each file. A file ends what it has started beside it.

Tests have names of their own; some kill its programs, or take all that it knows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.servers import PATIENT, patient_relay, with_jobsets
from tests.kubernetes.cluster import NODE_GROUPS, Cluster, started
from tpu_standins.kubernetes.programs import Programs
from tpu_standins.prerequisites import Tools


@pytest.fixture(autouse=True, scope="package")
def patient() -> Iterator[None]:
    with patient_relay():
        yield


@pytest.fixture(scope="package")
def shared_cluster(programs: Programs, tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with started(programs, tools, tmp_path_factory.mktemp("kubernetes"), with_jobsets) as one:
        yield one


@pytest.fixture(scope="module")
def cluster(shared_cluster: Cluster) -> Cluster:
    """The control plane without what the tests of other files left in it."""
    shared_cluster.empty()
    said = shared_cluster.kubectl("delete", "crd", NODE_GROUPS, "--ignore-not-found", PATIENT)
    assert said.code == 0, said.error
    return shared_cluster
