"""One suite for two API servers, started once for the tests of this folder and shared by them.

What is claimed holds on Kubernetes' own, which decides, and on ours. Tests share a server: names of what has no
namespace are unique (`servers.unique`), a test has a namespace of its own, and nothing is ever cleaned up.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster import servers
from tests.cluster.servers import EARLIER, EMBEDDED, REAL, Cluster, patient_relay
from tpu_standins.controllers.catalogue import JOBSET_EARLIER
from tpu_standins.kubernetes.programs import Programs
from tpu_standins.prerequisites import Tools


@pytest.fixture(scope="package")
def real(programs: Programs, tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with servers.real(programs, tools.setpriv, tmp_path_factory.mktemp("real")) as one:
        yield one


@pytest.fixture(scope="package")
def earlier(programs: Programs, tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with servers.real(programs, tools.setpriv, tmp_path_factory.mktemp("earlier"), JOBSET_EARLIER, EARLIER) as one:
        yield one


@pytest.fixture(scope="package")
def embedded(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with servers.embedded(tools.setpriv, tmp_path_factory.mktemp("embedded")) as one:
        yield one


@pytest.fixture(autouse=True, scope="package")
def patient() -> Iterator[None]:
    with patient_relay():
        yield


@pytest.fixture(params=[REAL, EMBEDDED])
def cluster(request: pytest.FixtureRequest) -> Cluster:
    found: Cluster = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def namespace(cluster: Cluster) -> str:
    return cluster.namespace()
