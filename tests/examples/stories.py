"""What is applied for the tests of examples: plain JobSets as they are, and a namespace for each longer story."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import yaml

from infra.local.plan import REPOSITORY
from tests.examples.cluster import Cluster, Json

FOLDER = REPOSITORY / "examples"
FLEX_START = FOLDER / "flex-start.yaml"
EXAMPLES = [
    each
    for each in sorted(FOLDER.glob("*.yaml"))
    if each != FLEX_START and yaml.safe_load(each.read_text())["kind"] == "JobSet"
]


def flex_start(cluster: Cluster) -> None:
    """Apply the example with pods that run so long that their hosts can be taken back meanwhile."""
    jobset: Json = yaml.safe_load(FLEX_START.read_text())
    pod = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    pod["metadata"]["annotations"]["local.kubelet/run-seconds"] = "20"
    cluster.kubectl("apply", "-f", "-", text=json.dumps(jobset))


def indexed_job(cluster: Cluster) -> None:
    cluster.kubectl("apply", "-f", str(FOLDER / "indexed-job.yaml"))


def groups(cluster: Cluster) -> None:
    cluster.kubectl("apply", "-f", "-", text=leader_worker_set("serve"))


def scaled_groups(cluster: Cluster) -> None:
    """Apply one of the groups: two that wait at once may exchange their slices."""
    cluster.kubectl("apply", "-f", "-", text=leader_worker_set("scaled").replace("replicas: 2", "replicas: 1"))


def leader_worker_set(name: str) -> str:
    """Return the example, in a shape that no other has: nothing pins the pods of groups."""
    text, topology = (FOLDER / "leader-worker-set.yaml").read_text(), {"serve": ("4x8", 8), "scaled": ("8x8", 16)}[name]
    text = text.replace("name: serve\n  annotations", f"name: {name}\n  annotations")
    return text.replace("topology: 4x4", f"topology: {topology[0]}").replace("size: 4", f"size: {topology[1]}")


STORIES: Mapping[str, Callable[[Cluster], None]] = {
    "flex-start": flex_start,
    "indexed-job": indexed_job,
    "groups": groups,
    "scaled-groups": scaled_groups,
    "refused": lambda _: None,
}
"""By namespace, what begins there."""
