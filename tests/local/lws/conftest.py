"""A control plane for the tests of this folder, which knows LeaderWorkerSets before its controllers start."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from infra.local.clients.api import Api
from infra.local.clients.installing import install
from infra.local.clients.kinds import KINDS
from infra.local.kubernetes.control_plane import ControlPlane
from infra.local.kubernetes.programs import Programs
from infra.local.lws.manifests import CONFIGURATIONS, crd
from infra.local.prerequisites import Tools
from tests.kubernetes.cluster import Cluster, started


def with_leader_worker_sets(plane: ControlPlane) -> None:
    """Add the kind: controllers learn of later ones after 30 s only."""
    with closing(Api.of(plane.kubeconfig)) as api:
        install(api, KINDS["leaderworkersets"], crd(), manager=CONFIGURATIONS)


@pytest.fixture(scope="package")
def cluster(programs: Programs, tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with started(programs, tools, tmp_path_factory.mktemp("kubernetes"), with_leader_worker_sets) as one:
        yield one
