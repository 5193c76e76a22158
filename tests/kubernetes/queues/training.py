"""The queues of a training environment as Terraform plans them, in Kueue as it is configured there.

64 chips may be bought.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.infra.environments.configuration.configured import Configured, configured
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.queues.queued import ACCELERATOR, TOPOLOGY, Json, applied, with_kueue

SMALL = {ACCELERATOR: "tpu-v4-podslice", TOPOLOGY: "2x2x2"}
"""Hosts of which none stand."""
KINDS = ("ResourceFlavor", "Cohort", "ClusterQueue", "LocalQueue", "WorkloadPriorityClass")


@contextmanager
def environment(cluster: Cluster, folder: Path, outputs: Json, patience: str = "", **variables: Any) -> Iterator[None]:
    """Have Kueue with the configuration and the queues that Terraform plans; they go with the block.

    `patience`: how long pods may take to be ready, if not as long as there.
    """
    settings = {"policy": {"chips_per_cluster": 64}}
    plan = configured(folder, outputs, settings, **variables)
    file = folder / "kueue.yaml"
    file.write_text(configuration(plan, patience))
    with with_kueue(cluster, file):
        made = [each for kind in KINDS for each in plan.manifests(kind).values()]
        namespaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in teams(plan)]
        applied(cluster, *namespaces, *made)
        yield
        for each in reversed(made):
            where = [f"--namespace={each['metadata']['namespace']}"] if "namespace" in each["metadata"] else []
            said = cluster.kubectl("delete", each["kind"], each["metadata"]["name"], *where)
            assert said.code == 0, said.error


def configuration(plan: Configured, patience: str) -> str:
    text: str = plan.values("kueue")["managerConfig"]["controllerManagerConfigYaml"]
    planned = plan.kueue()["waitForPodsReady"]["timeout"]
    assert text.count(f'"{planned}"') == 1
    return text.replace(f'"{planned}"', patience) if patience else text


def teams(plan: Configured) -> set[str]:
    return {each["metadata"]["namespace"] for each in plan.manifests("LocalQueue").values()}
