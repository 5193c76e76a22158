"""What an environment's builds change, as far as they can see it: strict on the order in which they do.

Google Cloud, Terraform and the cluster share one memory, and each refuses what may not happen.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar

from tests.infra.builds.played import Call, Reply
from tests.infra.gcloud.accounts import Accounts
from tests.infra.gcloud.objects import Objects
from tests.infra.loopback import Request, Response

COMPUTE = "https://compute.googleapis.com/compute/v1/projects/shop"
CLUSTER = "google_container_cluster.cluster"

OF_A_TEST = {"objects"}
"""What is at addresses that another test does not have."""


@dataclass
class Cloud(ABC):
    """All of it, and what a test changes of it before or between the steps."""

    region: ClassVar[str]
    cluster: ClassVar[str]
    """Its name."""
    bucket: ClassVar[str]
    """Its address in Terraform."""
    made: ClassVar[dict[str, list[str]]]
    """By root, what Terraform makes."""
    defaults: ClassVar[dict[str, dict[str, Any]]] = {}
    """By root, variables that have a value without being set."""

    objects: Objects = field(default_factory=lambda: Objects({"state": {}}))
    accounts: Accounts = field(default_factory=lambda: Accounts(projects={"shop": True}))
    status: str = ""
    """Of the cluster; "" if there is none."""
    pools: dict[str, dict[str, str]] = field(default_factory=dict)
    """Labels of node pools, by name."""
    compute: dict[str, list[str]] = field(default_factory=dict)
    """By kind, the names of what there is: networks, disks, firewalls, forwardingRules..."""
    in_other_networks: set[str] = field(default_factory=set)
    states: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Of Terraform, by root."""
    fails_on: str = "nothing of the kind"
    """A call that has this in it fails."""

    def __post_init__(self) -> None:
        self.states = {root: {} for root in self.made}

    def memory(self) -> dict[str, Any]:
        """Return a copy of what is there, and what a test has changed."""
        kept = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in OF_A_TEST}
        return deepcopy({**kept, "buckets": self.objects.buckets})

    def recall(self, memory: dict[str, Any]) -> None:
        """Have what another one had."""
        known = deepcopy(memory)
        self.objects.buckets = known.pop("buckets")
        for name, value in known.items():
            setattr(self, name, value)

    # What an environment has of its own.

    @abstractmethod
    def outputs(self, root: str) -> dict[str, Any]:
        """Return the outputs of a root that was applied."""

    @abstractmethod
    def answers(self, said: str) -> Iterator[tuple[str, str]]:
        """Yield what kubectl answers to calls of a form; what a call changes is changed before."""

    @abstractmethod
    def applied(self, root: str) -> None:
        """Change what a root that is applied changes."""

    @abstractmethod
    def destroyed(self, root: str) -> None:
        """Change what a root that is destroyed changes, unless it may not be."""

    # Google Cloud.

    def google(self, request: Request) -> Response:
        """Answer as Google's APIs."""
        if re.search(r"/storage/v1/b/[\w-]+/(o|storageLayout)", request.path):
            return self.objects.answer(request)
        clusters = f"/v1/projects/shop/locations/{self.region}/clusters"
        if request.path == clusters:
            return Response({"clusters": [self._cluster()] if self.status else []})
        if request.path == f"{clusters}/{self.cluster}" and self.status:
            return Response(self._cluster())
        if request.path == f"{clusters}/{self.cluster}/nodePools" and self.status:
            return Response(
                {"nodePools": [{"name": name, "config": {"labels": has}} for name, has in self.pools.items()]}
            )
        return self._compute(request) or self.accounts.answer(request)

    def _cluster(self) -> dict[str, Any]:
        name = {"endpoint": f"gke-t.{self.region}.gke.goog", "allowExternalTraffic": True}
        path = f"projects/shop/locations/{self.region}/clusters/{self.cluster}"
        return {
            "name": self.cluster,
            "location": self.region,
            "zone": self.region,
            "status": self.status,
            "endpoint": "203.0.113.5",
            "selfLink": f"https://container.googleapis.com/v1/{path}",
            "controlPlaneEndpointsConfig": {"dnsEndpointConfig": name},
        }

    def _compute(self, request: Request) -> Response | None:
        at = re.fullmatch(
            r"(?:/compute/v1)?/projects/shop/(?:aggregated|global|(?:zones|regions)/[\w-]+)/(\w+)(?:/([\w-]+))?",
            request.path,
        )
        if at is None:
            return None
        kind, name = at.groups()
        if name is not None and request.method == "DELETE":
            self.compute[kind].remove(name)
            link = f"{COMPUTE}/global/operations/operation-1"
            return Response({"name": "operation-1", "operationType": "delete", "status": "DONE", "selfLink": link})
        found = [self._resource(kind, each) for each in self.compute.get(kind, [])]
        if "/global/" in request.path:
            return Response({"items": found})
        return Response({"items": {f"zones/{self.region}-b": {kind: found}}})

    def _resource(self, kind: str, name: str) -> dict[str, Any]:
        where = {
            "networks": "global",
            "firewalls": "global",
            "forwardingRules": f"regions/{self.region}",
            "targetPools": f"regions/{self.region}",
        }.get(kind, f"zones/{self.region}-b")
        network = "default" if name in self.in_other_networks else "".join(self.compute.get("networks", []))
        return {
            "name": name,
            "labels": {"goog-k8s-cluster-name": self.cluster},
            "network": f"{COMPUTE}/global/networks/{network}",
            "selfLink": f"{COMPUTE}/{where}/{kind}/{name}",
            where.partition("/")[0].removesuffix("s"): f"{COMPUTE}/{where}",
        }

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
        if root != "infrastructure" and not self.states["infrastructure"]:
            raise RuntimeError("the outputs of the infrastructure are not there")
        values = self.defaults.get(root, {}) | _variables(options)
        changes = [{"address": each, "change": {"actions": ["create"]}} for each in self.made[root]]
        plan = {
            "variables": {name: {"value": value} for name, value in values.items()},
            "planned_values": {"outputs": {name: {"value": value} for name, value in self.outputs(root).items()}},
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
        if f"-target={self.bucket}" in options:
            assert "-var=force_destroy=true" in options
            self.states[root][self.bucket]["force_destroy"] = True
            return ""
        assert options == ("-input=false", "environment.tfplan"), "it is not what was planned"
        plan = json.loads((folder / "environment.tfplan").read_text())
        self.states[root] = {change["address"]: {} for change in plan["resource_changes"]}
        self.applied(root)
        return ""

    def _output(self, root: str, _: Path, options: tuple[str, ...]) -> str:
        outputs = self.outputs(root)
        if options[0] == "-raw":
            return str(outputs[options[1]])
        return json.dumps({name: {"value": value} for name, value in outputs.items()})

    def _state(self, root: str, _: Path, options: tuple[str, ...]) -> str:
        assert options[0] == "rm"
        del self.states[root][options[1]]
        return ""

    def _destroy(self, root: str, _: Path, options: tuple[str, ...]) -> str:
        assert _variables(options)["project_id"] == "shop"
        if f"-target={CLUSTER}" in options:
            del self.states[root][CLUSTER]
            self.status = ""
            return ""
        if root == "infrastructure":
            bucket = self.states[root].get(self.bucket, {"force_destroy": True})
            assert bucket.get("force_destroy"), "the bucket is not empty"
        self.destroyed(root)
        self.states[root] = {}
        return ""

    # The cluster.

    def kubectl(self, call: Call) -> Reply:
        """Answer as kubectl."""
        if self.fails_on in str(call):
            return Reply(code=1, error="Error from server: no\n")
        if self.status != "RUNNING" and "--local" not in call.words:
            raise RuntimeError("there is no cluster")
        for pattern, answer in self.answers(str(call)):
            if re.search(pattern, str(call)):
                return Reply(answer)
        raise RuntimeError("it is not known")

    def sleep(self, _: Call) -> Reply:
        """Let time pass."""
        return Reply()


def _variables(options: tuple[str, ...]) -> dict[str, Any]:
    [file] = [option.removeprefix("-var-file=") for option in options if option.startswith("-var-file=")]
    values: dict[str, Any] = json.loads(Path(file).read_text())
    return values
