"""What the training environment's builds change, as far as they can see it: strict on the order in which they do.

Google Cloud, Terraform and the cluster share one memory, and each refuses what may not happen.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.infra.builds.played import Call, Reply
from tests.infra.gcloud.accounts import Accounts
from tests.infra.gcloud.objects import Objects
from tests.infra.loopback import Request, Response

CLUSTER = "/v1/projects/shop/locations/us-central2/clusters"
SLICE = {"google.com/tpu-slice-id": "s-1"}
FLAVOR = {
    "accelerator": "tpu-v4-podslice",
    "capacity": "on_demand",
    "hosts": 4,
    "chips_per_host": 4,
    "slices": 2,
    "node_labels": {"cloud.google.com/gke-tpu-accelerator": "tpu-v4-podslice"},
    "node_taints": [{"key": "google.com/tpu", "value": "present", "effect": "NoSchedule"}],
}
MADE = {
    "infrastructure": [
        "google_compute_network.network",
        "google_container_cluster.cluster",
        "google_storage_bucket.artifacts",
    ],
    "configuration": ['kubernetes_namespace_v1.training["tpu-training"]', "helm_release.kueue"],
}


@dataclass
class World:
    """All of it, and what a test changes of it before or between the steps."""

    objects: Objects = field(default_factory=lambda: Objects({"state": {}}))
    accounts: Accounts = field(default_factory=lambda: Accounts(projects={"shop": True}))
    status: str = ""
    """Of the cluster; "" if there is none."""
    pools: dict[str, dict[str, str]] = field(default_factory=dict)
    """Labels of node pools, by name."""
    network: bool = False
    disks: list[str] = field(default_factory=list)
    states: dict[str, dict[str, Any]] = field(default_factory=lambda: {"infrastructure": {}, "configuration": {}})
    jobsets: set[str] = field(default_factory=set)
    queues: bool = False
    """Whether Kueue is there."""
    stopped: bool = False
    """Whether its queues are."""
    suspended: bool = False
    """Whether the JobSets are."""
    admitted: int = 0
    bought: bool = True
    """Whether the provisioner releases slices of JobSets that are gone."""
    flavors: dict[str, Any] = field(default_factory=lambda: {"v4": FLAVOR})
    defaulted: str = "true Indexed"
    report: str = "16 devices, 4 here"
    ends: str = "Completed"
    fails_on: str = "nothing of the kind"
    """A call that has this in it fails."""

    def google(self, request: Request) -> Response:
        """Answer as Google's APIs."""
        if re.search(r"/storage/v1/b/[\w-]+/o", request.path):
            return self.objects.answer(request)
        if request.path == CLUSTER:
            return Response({"clusters": [self._cluster()] if self.status else []})
        if request.path == f"{CLUSTER}/trainer" and self.status:
            return Response(self._cluster())
        if request.path == f"{CLUSTER}/trainer/nodePools" and self.status:
            return Response(
                {"nodePools": [{"name": name, "config": {"labels": has}} for name, has in self.pools.items()]}
            )
        return self._compute(request) or self.accounts.answer(request)

    def _cluster(self) -> dict[str, Any]:
        name = {"endpoint": "gke-t.us-central2.gke.goog", "allowExternalTraffic": True}
        return {
            "name": "trainer",
            "location": "us-central2",
            "zone": "us-central2",
            "status": self.status,
            "endpoint": "203.0.113.5",
            "selfLink": "https://container.googleapis.com/v1/projects/shop/locations/us-central2/clusters/trainer",
            "controlPlaneEndpointsConfig": {"dnsEndpointConfig": name},
        }

    def _compute(self, request: Request) -> Response | None:
        at = "https://compute.googleapis.com/compute/v1/projects/shop"
        ours = {"goog-k8s-cluster-name": "trainer"}
        disks = [
            {"name": name, "labels": ours, "selfLink": f"{at}/zones/us-central2-b/disks/{name}"} for name in self.disks
        ]
        kinds = {"disks": {"zones/us-central2-b": {"disks": disks}}, "instances": {}, "forwardingRules": {}}
        match = re.fullmatch(r"(?:/compute/v1)?/projects/shop/(?:aggregated|global)/(\w+)", request.path)
        if match is None:
            return None
        kind = match[1]
        if kind in kinds:
            return Response({"items": kinds[kind]})
        if kind == "networks":
            found = [{"name": "training", "selfLink": f"{at}/global/networks/training"}] if self.network else []
            return Response({"items": found})
        return Response({"items": []}) if kind == "firewalls" else None

    # Terraform.

    def terraform(self, call: Call) -> Reply:
        """Answer as Terraform, in a root that `-chdir` names."""
        if self.fails_on in str(call):
            return Reply(code=1, error="Error: no\n")
        root = Path(call.words[0].removeprefix("-chdir=")).name
        folder = call.folder / call.words[0].removeprefix("-chdir=")
        command, options = call.words[1], call.words[2:]
        if command == "init":
            (folder / ".terraform").mkdir(exist_ok=True)
            (folder / ".terraform.lock.hcl").write_text(f"checksums of {root}")
            return Reply()
        if root == "validated":
            assert command == "plan"
            return Reply()
        if not (folder / ".terraform").exists():
            raise RuntimeError("it was not initialized")
        return Reply(getattr(self, f"_{command}")(root, folder, options))

    def _plan(self, root: str, folder: Path, options: tuple[str, ...]) -> str:
        if root == "configuration" and not self.states["infrastructure"]:
            raise RuntimeError("the outputs of the infrastructure are not there")
        [file] = [option.removeprefix("-var-file=") for option in options if option.startswith("-var-file=")]
        values = json.loads(Path(file).read_text())
        chips = sum(each["slices"] * each["hosts"] * each["chips_per_host"] for each in self.flavors.values())
        changes = [{"address": each, "change": {"actions": ["create"]}} for each in MADE[root]]
        plan = {
            "variables": {
                name: {"value": value} for name, value in {"tpu_namespace": "tpu-training", **values}.items()
            },
            "planned_values": {"outputs": {"chips": {"value": chips}}},
            "resource_changes": changes,
        }
        (folder / "environment.tfplan").write_text(json.dumps(plan))
        return ""

    def _show(self, root: str, folder: Path, options: tuple[str, ...]) -> str:
        if "environment.tfplan" in options:
            return (folder / "environment.tfplan").read_text()
        held = [{"address": name, "mode": "managed", "values": values} for name, values in self.states[root].items()]
        return json.dumps({"values": {"root_module": {"resources": held}}} if held else {"format_version": "1.0"})

    def _apply(self, root: str, folder: Path, options: tuple[str, ...]) -> str:
        if "-target=google_storage_bucket.artifacts" in options:
            assert "-var=force_destroy=true" in options
            self.states[root]["google_storage_bucket.artifacts"]["force_destroy"] = True
            return ""
        assert options == ("-input=false", "environment.tfplan"), "it is not what was planned"
        plan = json.loads((folder / "environment.tfplan").read_text())
        self.states[root] = {change["address"]: {} for change in plan["resource_changes"]}
        if root == "infrastructure":
            self.status, self.network = "RUNNING", True
        else:
            self.queues = True
        return ""

    def _output(self, root: str, _: Path, options: tuple[str, ...]) -> str:
        if options == ("-raw", "provisioner_settings"):
            return "zone: us-central2-b\n"
        outputs: dict[str, dict[str, Any]] = {
            "infrastructure": {"flavors": self.flavors},
            "configuration": {"local_queues": {"tpu-training": "tpu-training"}},
        }
        return json.dumps({name: {"value": value} for name, value in outputs[root].items()})

    def _state(self, root: str, _: Path, options: tuple[str, ...]) -> str:
        assert options[0] == "rm"
        del self.states[root][options[1]]
        return ""

    def _destroy(self, root: str, _: Path, options: tuple[str, ...]) -> str:
        [file] = [option.removeprefix("-var-file=") for option in options if option.startswith("-var-file=")]
        assert json.loads(Path(file).read_text())["project_id"] == "shop"
        if root == "configuration":
            assert self.status == "RUNNING", "the cluster does not answer"
            assert not self.jobsets, "a namespace waits for finalizers that nobody takes away any more"
            self.queues = self.stopped = self.suspended = False
        else:
            assert not self.states["configuration"], "the configuration would be lost"
            assert SLICE not in self.pools.values(), "a slice is orphaned"
            bucket = self.states[root].get("google_storage_bucket.artifacts", {"force_destroy": True})
            assert bucket.get("force_destroy"), "the bucket is not empty"
            self.status, self.network = "", False
        self.states[root] = {}
        return ""

    # The cluster.

    def kubectl(self, call: Call) -> Reply:
        """Answer as kubectl."""
        if self.fails_on in str(call):
            return Reply(code=1, error="Error from server: no\n")
        if self.status != "RUNNING" and "--local" not in call.words:
            raise RuntimeError("there is no cluster")
        for pattern, answer in self._answers(str(call)):
            if re.search(pattern, str(call)):
                return Reply(answer)
        raise RuntimeError("it is not known")

    def _answers(self, said: str) -> Iterator[tuple[str, str]]:
        yield "get --raw /readyz", "ok"
        yield "patch --local", '{"kind": "JobSet"}'
        yield "create --dry-run=server", self.defaulted
        yield "label clusterqueues --all .*--dry-run=server", "labeled"
        yield "wait (clusterqueues|localqueues) --all", "condition met"
        yield "get (clusterqueues|localqueues) --all-namespaces", "tpu-training: it points to no ClusterQueue"
        yield "admittedWorkloads", str(self.admitted)
        yield from self._jobset(said)
        yield from self._draining(said)

    def _jobset(self, said: str) -> Iterator[tuple[str, str]]:
        if "kubectl create --filename" in said:
            assert not self.stopped
            self.jobsets.add("smoke-check")
        if "delete jobset smoke-check" in said:
            self.jobsets.discard("smoke-check")
        yield "create --filename build/smoke/jobset.json", "created"
        yield "delete jobset smoke-check", "deleted"
        yield "get jobset smoke-check", f"Suspended {self.ends}"
        yield "logs .*--tail=-1", "\n".join(["noise", *[self.report] * 4])
        yield "describe jobset|get workloads,pods|get events", "what is known of it"

    def _draining(self, said: str) -> Iterator[tuple[str, str]]:
        yield "get customresourcedefinitions leaderworkersets", ""
        yield "get customresourcedefinitions", "crd/it" if self.queues else ""
        yield "get clusterqueues.kueue.x-k8s.io --output name", "clusterqueue/cluster-queue"
        if "HoldAndDrain" in said:
            self.stopped = True
        yield "patch clusterqueue/cluster-queue .*HoldAndDrain", "patched"
        yield "get jobsets.* --selector !kueue.x-k8s.io/queue-name", "tpu-training alone\n" if self.jobsets else ""
        yield "get jobs.* --selector !kueue.x-k8s.io/queue-name", ""
        if "patch jobsets.jobset.x-k8s.io alone --namespace tpu-training" in said:
            assert self.stopped, "others are admitted"
            self.suspended = True
        yield "patch jobsets.* alone .*suspend", "patched"
        yield "get namespaces", "default kube-system kueue-system tpu-slice-provisioner tpu-training"
        if re.search("delete .*pods.* --namespace tpu-training", said):
            assert self.suspended or not self.jobsets, "the provisioner would take so many deletions for a mistake"
            assert "jobsets" in said or not self.queues
            self.jobsets.clear()
        yield "delete .*pods.* --all --namespace (default|tpu-training) ", "deleted"
        yield "get persistentvolumes", ""

    def sleep(self, _: Call) -> Reply:
        """Let time pass: the provisioner deletes what nobody needs."""
        if self.bought and (self.suspended or not self.jobsets):
            self.pools = {name: labels for name, labels in self.pools.items() if labels != SLICE}
        return Reply()
