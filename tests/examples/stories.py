"""What is applied for the tests of examples: plain JobSets as they are, and a namespace for each longer story."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml
from google.cloud import container_v1 as gke
from google.cloud.container_v1.services.cluster_manager.transports import ClusterManagerGrpcTransport
from grpc import insecure_channel

from infra.local.addresses import Addresses
from infra.local.plan import REPOSITORY
from tests.examples import alike
from tests.examples.cluster import FOR_EVER, POOL, Cluster, Json
from tpu_standins.kubelet.keys import RUN_SECONDS

FOLDER = REPOSITORY / "examples"
FLEX_START, JOBS_OF_ONE_POD = FOLDER / "flex-start.yaml", FOLDER / "v5e-jobs-of-one-pod.yaml"
TRAINING = FOLDER / "training"
QUEUE = "tpu-training"
ACCOUNTS = ("cloud-tpu-sa", "tensorboard-sa")
V4, STATIC, HALL = FOLDER / "v4.yaml", "static", "hall"
"""An example, and slices that stand for it, each reserved by a taint of its name."""
OFFICE = "office"
"""Another one, for pods without chips."""
REFUSED = ("gang-by-flex-start", "impossible-shape", "more-pods-than-hosts", "not-allowed")
SPOT, PRIORITIES = TRAINING / "spot.yaml", TRAINING / "priorities.yaml"


def jobsets_in(folder: Path) -> list[Path]:
    """Return the files that have JobSets and nothing else."""
    files = {each: yaml.safe_load_all(each.read_text()) for each in sorted(folder.glob("*.yaml"))}
    return [each for each, documents in files.items() if {one.get("kind") for one in documents} == {"JobSet"}]


EXAMPLES = [each for each in jobsets_in(FOLDER) if each != FLEX_START]
TRAINERS = [each for each in jobsets_in(TRAINING) if each not in {SPOT, PRIORITIES}]


def flex_start(cluster: Cluster) -> None:
    """Apply the example with pods that run until they are told to end: their hosts are taken back meanwhile."""
    cluster.create(running(FLEX_START))


def indexed_job(cluster: Cluster) -> None:
    cluster.kubectl("apply", "-f", str(FOLDER / "indexed-job.yaml"))


def one_host_job(cluster: Cluster) -> None:
    """Apply the example with a pod that runs until it is told to end."""
    (job,) = yaml.safe_load_all((FOLDER / "one-host-job.yaml").read_text())
    job["spec"]["template"]["metadata"] = {"annotations": {RUN_SECONDS: FOR_EVER}}
    cluster.create([job])


def leaders_without_tpu(cluster: Cluster) -> None:
    """Apply the example with leaders on hosts that stand: the stand-ins have no other nodes."""
    cluster.until(lambda: cluster.ready_nodes(f"{POOL}={OFFICE}") == 2)
    (groups,) = yaml.safe_load_all((FOLDER / "leader-without-tpu.yaml").read_text())
    leader = groups["spec"]["leaderWorkerTemplate"]["leaderTemplate"]["spec"]
    leader |= {"nodeSelector": {POOL: OFFICE}, "tolerations": [{"operator": "Exists"}]}
    cluster.create([groups])


def groups(cluster: Cluster) -> None:
    cluster.kubectl("apply", "-f", "-", text=leader_worker_set("serve"))


def scaled_groups(cluster: Cluster) -> None:
    """Apply one of the groups."""
    cluster.kubectl("apply", "-f", "-", text=leader_worker_set("scaled").replace("replicas: 2", "replicas: 1"))


def leader_worker_set(name: str) -> str:
    """Return the example, of four hosts too, on an accelerator and in a shape that no other has."""
    text, accelerator = (FOLDER / "leader-worker-set.yaml").read_text(), {"serve": "tpu7x", "scaled": "tpu-v5p-slice"}
    text = text.replace("name: serve\n  annotations", f"name: {name}\n  annotations")
    return text.replace("tpu-v5-lite-podslice", accelerator[name]).replace("topology: 4x4", "topology: 2x2x4")


def training(cluster: Cluster) -> None:
    """Make what a training environment has in its namespace, and apply the examples there, but for two with stories."""
    environment(cluster, chips=1000)
    cluster.kubectl("apply", *(part for example in TRAINERS for part in ("-f", str(example))))


def training_spot(cluster: Cluster) -> None:
    """Apply the example with pods that run until their hosts are preempted."""
    environment(cluster, chips=8)
    cluster.create(running(SPOT))


def priorities(cluster: Cluster) -> None:
    """Apply the example to a queue with room for one, which opens when both wait."""
    environment(cluster, chips=4, stopPolicy="Hold")
    cluster.create(running(PRIORITIES, "1"))
    cluster.until(lambda: len(cluster.items("workloads")) == 2)
    cluster.api.patch("clusterqueues", None, cluster.namespace, {"spec": {"stopPolicy": "None"}})


def preempted(cluster: Cluster) -> None:
    """Apply the one of lower priority alone to a queue with room for one, of which it is taken."""
    environment(cluster, chips=4, preemption={"withinClusterQueue": "LowerPriority"})
    cluster.create([renamed(running(PRIORITIES)[0], "leaves")])


def two_flavors(cluster: Cluster) -> None:
    """Apply an example to a queue of what stands, which its flavor tolerates, and of what may be bought."""
    cluster.until(lambda: cluster.ready_nodes(f"cloud.google.com/gke-nodepool={HALL}") == 2)
    labels = {"cloud.google.com/gke-tpu-accelerator": "tpu-v4-podslice", "cloud.google.com/gke-tpu-topology": "2x2x2"}
    stands = {"nodeLabels": labels, "tolerations": [{"key": HALL, "operator": "Exists"}]}
    queue(cluster, {"stands": (stands, 8), "bought": ({}, 8)})
    cluster.create([of_queue(renamed(running(V4)[0], "stands"))])


def beside_static(cluster: Cluster) -> None:
    """Apply an example with two Jobs where there is a static slice for one, which a taint reserves for them."""
    cluster.until(lambda: cluster.ready_nodes(f"cloud.google.com/gke-nodepool={STATIC}") == 2)
    (jobset,) = running(V4)
    jobset["metadata"]["name"] = STATIC
    (replicated,) = jobset["spec"]["replicatedJobs"]
    replicated["replicas"] = 2
    replicated["template"]["spec"]["template"]["spec"]["tolerations"] = [{"key": STATIC, "operator": "Exists"}]
    cluster.create([jobset])


def not_served(cluster: Cluster) -> None:
    cluster.kubectl("apply", *(part for name in REFUSED for part in ("-f", str(FOLDER / "refused" / f"{name}.yaml"))))


def static_slice(addresses: Addresses, name: str) -> None:
    """Create a slice as Terraform does for somebody: without a label of a provisioner."""
    placement = {"type_": gke.NodePool.PlacementPolicy.Type.COMPACT, "tpu_topology": "2x2x2"}
    taint = {"key": name, "value": "true", "effect": gke.NodeTaint.Effect.NO_SCHEDULE}
    pool = gke.NodePool(
        name=name,
        initial_node_count=2,
        locations=["us-central2-b"],
        config={"machine_type": "ct4p-hightpu-4t", "taints": [taint]},
        placement_policy=placement,
    )
    with insecure_channel(addresses.gke) as channel:
        client = gke.ClusterManagerClient(transport=ClusterManagerGrpcTransport(channel=channel))
        client.create_node_pool(parent=addresses.cluster_path, node_pool=pool)


def running(example: Path, seconds: str = FOR_EVER) -> list[Json]:
    """Return the JobSets of an example, with pods that run for so long, or until they are told to end."""
    jobsets = list(yaml.safe_load_all(example.read_text()))
    for jobset in jobsets:
        pod = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
        pod.setdefault("metadata", {}).setdefault("annotations", {})[RUN_SECONDS] = seconds
    return jobsets


def renamed(jobset: Json, name: str) -> Json:
    return jobset | {"metadata": jobset["metadata"] | {"name": name}}


def of_queue(jobset: Json) -> Json:
    return jobset | {"metadata": jobset["metadata"] | {"labels": {"kueue.x-k8s.io/queue-name": QUEUE}}}


def environment(cluster: Cluster, chips: int, **spec: Any) -> None:
    """Make service accounts and a queue as infra/environments/training does, with quota for so many chips."""
    cluster.create(
        [
            *({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": one}} for one in ACCOUNTS),
            *(kueue("WorkloadPriorityClass", one, value=value) for one, value in {"low": 250, "high": 750}.items()),
        ]
    )
    queue(cluster, {cluster.namespace: ({}, chips)}, **spec)


def queue(cluster: Cluster, flavors: Mapping[str, tuple[Json, int]], **spec: Any) -> None:
    """Make a queue for a namespace; `flavors`: what each is, and its quota of chips, by name."""
    quotas = {name: [{"name": "google.com/tpu", "nominalQuota": chips}] for name, (_, chips) in flavors.items()}
    rows = [{"name": name, "resources": resources} for name, resources in quotas.items()]
    group = {"coveredResources": ["google.com/tpu"], "flavors": rows}
    name, whole = cluster.namespace, {"namespaceSelector": {}, "resourceGroups": [group], **spec}
    cluster.create(
        [
            *(kueue("ResourceFlavor", each, spec=flavor) for each, (flavor, _) in flavors.items()),
            kueue("ClusterQueue", name, spec=whole),
            kueue("LocalQueue", QUEUE, spec={"clusterQueue": name}),
        ]
    )


def kueue(kind: str, name: str, **fields: Any) -> Json:
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}, **fields}


STORIES: Mapping[str, Callable[[Cluster], None]] = {
    "flex-start": flex_start,
    "indexed-job": indexed_job,
    "one-host-job": one_host_job,
    "leaders-without-tpu": leaders_without_tpu,
    "groups": groups,
    "scaled-groups": scaled_groups,
    "training": training,
    "training-spot": training_spot,
    "priorities": priorities,
    "preempted": preempted,
    "two-flavors": two_flavors,
    "beside-static": beside_static,
    "refused": not_served,
    "alike": alike.begin,
}
"""By namespace, what begins there."""
