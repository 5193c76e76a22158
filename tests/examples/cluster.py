"""A local stack that takes seconds where GKE takes minutes, and a user's commands on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import pytest
from google.cloud import firestore

from infra.local.addresses import Addresses
from infra.local.demo.http import get_json, press
from infra.local.plan import REPOSITORY
from infra.local.stack import Stack
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.wire.cluster_settings import decode_settings, settings_key
from tpu_slices_cli.settings_file import read_settings
from tpu_standins.clients.api import Api
from tpu_standins.clients.conditions import is_true
from tpu_standins.clients.kinds import KINDS
from tpu_standins.kubelet.keys import RUN_SECONDS
from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.prerequisites import Tools
from tpu_standins.testing.waiting import until

SETTINGS = REPOSITORY / "examples" / "clusters" / "research.yaml"
ADMISSION = REPOSITORY / "infra" / "kubernetes" / "admission.yaml"
FAST = (
    *("--create-seconds", "1", "--join-seconds", "0.2", "--ready-seconds", "0.2", "--chips-seconds", "0.2"),
    *("--delete-seconds", "0.3", "--log-seconds", "0.1", "--shutdown-seconds", "60"),
)
"""Pods have a minute to end, in which the kubelet may pause; nothing else has an end."""
FOR_EVER = "100000"
POOL = "cloud.google.com/gke-nodepool"
PLURALS = {kind.name: plural for plural, kind in KINDS.items()}
Json = dict[str, Any]
T = TypeVar("T")


FULL = {"alike": {"chips_per_namespace": 12 * 8}}
"""Where one more of what `alike` asks for waits until another goes."""
IN_SECONDS = {"act_window": "60s", "requeue_after": "10s", "delete_retry_after": "1s", "resync_after": "20s"}
"""Limits of seconds, but for `act_window`: an order takes effect within twice that, though processes pause."""


def seed(addresses: Addresses, limits: Mapping[str, object] = IN_SECONDS) -> None:
    """Write the examples' settings for the local cluster, with these limits."""
    written = read_settings(SETTINGS).document
    document = {
        **written,
        "path": addresses.cluster_path,
        "policy": {**written["policy"], "namespaces": FULL},
        "limits": {**limits},
    }
    cluster = ClusterId(addresses.cluster_id)
    decode_settings(cluster, document, "")
    place = settings_key(cluster)
    with database(addresses) as client:
        client.document(place.collection, place.id).set(document)


@contextmanager
def database(addresses: Addresses) -> Iterator[firestore.Client]:
    """Yield the records of a local stack."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("FIRESTORE_EMULATOR_HOST", addresses.firestore)
        client = firestore.Client(project=addresses.project)
    yield client
    client.close()  # type: ignore[no-untyped-call]  # the client's own gap


@dataclass(frozen=True, slots=True)
class Cluster:
    """A user's commands, in a namespace, and the records."""

    addresses: Addresses
    tools: Tools
    api: Api
    records: firestore.Client
    namespace: str = "default"

    def within(self, namespace: str) -> Cluster:
        return replace(self, namespace=namespace)

    def kubectl(self, *arguments: str, text: str = "") -> str:
        where = (f"--kubeconfig={self.addresses.kubeconfig}", f"--namespace={self.namespace}")
        command = [str(self.tools.kubectl), *where, *arguments]
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True, input=text
        )
        return ended.stdout

    def pin(self) -> None:
        """Apply the admission policy, by which pods run on hosts that are meant for them, and wait until it counts."""
        self.kubectl("apply", "--server-side", "-f", str(ADMISSION))
        container = {"name": "main", "image": "main:1", "resources": {"limits": {"google.com/tpu": "1"}}}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"}, "spec": {"containers": [container]}}
        probe = ("create", "--dry-run=server", "-o", "yaml", "-f", "-")
        self.until(lambda: "google.com/nodepool-manager" in self.kubectl(*probe, text=json.dumps(pod)))

    def create(self, objects: Iterable[Json]) -> None:
        """Apply objects without a kubectl, a process that takes as long as many calls."""
        for obj in objects:
            kind = KINDS[PLURALS[obj["kind"]]]
            place = {"namespace": self.namespace} if kind.namespaced else {}
            self.api.apply(kind.plural, obj | {"metadata": place | obj["metadata"]}, manager="tests")

    def slices(self, *arguments: str, text: str = "") -> Json:
        """Run the command as a user of this project does; return its JSON."""
        command = [sys.executable, "-m", "tpu_slices_cli", *arguments, "-o", "json"]
        environment = {**os.environ, **self.addresses.environment(), "PYTHONPATH": str(REPOSITORY)}
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False, env=environment, input=text
        )
        assert ended.returncode == 0, ended.stderr
        found: Json = json.loads(ended.stdout)
        return found

    def get(self, plural: str, name: str) -> Json:
        return self.api.get(plural, self.namespace, name)

    def items(self, plural: str, labels: str = "", fields: str = "") -> list[Json]:
        selectors = {"labelSelector": labels, "fieldSelector": fields}
        chosen = {name: selector for name, selector in selectors.items() if selector}
        found: list[Json] = self.api.list(plural, self.namespace, **chosen)["items"]
        return found

    def conditions(self, jobset: str) -> set[str]:
        """Return the conditions that hold."""
        status = self.get("jobsets", jobset).get("status") or {}
        return {each["type"] for each in status.get("conditions") or () if each["status"] == "True"}

    def ready_nodes(self, labels: str) -> int:
        return sum(is_true(node, "Ready") for node in self.items("nodes", labels))

    def running(self, labels: str = "") -> list[str]:
        """Return the UIDs of the pods that run."""
        return [pod["metadata"]["uid"] for pod in self.items("pods", labels, "status.phase=Running")]

    def pools_by_job(self) -> dict[str, set[str]]:
        """Return the node pools on which the running pods of each Job are."""
        pools = {each["metadata"]["name"]: each["metadata"]["labels"][POOL] for each in self.items("nodes")}
        found: dict[str, set[str]] = {}
        for pod in self.items("pods", fields="status.phase=Running"):
            job = pod["metadata"]["labels"]["batch.kubernetes.io/job-name"]
            found.setdefault(job, set()).add(pools[pod["spec"]["nodeName"]])
        return found

    def end_pods(self, labels: str = "") -> None:
        """Let pods that run for ever end now."""
        for pod in self.items("pods", labels):
            change = {"metadata": {"annotations": {RUN_SECONDS: "0"}}}
            self.api.patch("pods", self.namespace, pod["metadata"]["name"], change)

    def said_of(self, kind: str, name: str) -> list[str]:
        """Return the messages of the Events on an object."""
        about = f"involvedObject.kind={kind},involvedObject.name={name}"
        return [event["message"] for event in self.items("events", fields=about)]

    def pools(self, workload: str) -> list[str]:
        """Return the node pools that there are of a workload, which no other's name begins with, in their order."""
        found: list[str] = [pool["name"] for pool in get_json(f"{self.addresses.buttons}/pools")["pools"]]
        return sorted(pool for pool in found if pool.startswith(f"tpu-{workload}-"))

    def slices_with_pool(self, workload: str) -> list[str]:
        """Return those pools without what is another in every run: its UID's hash, and the attempt."""
        return [pool.rsplit("-", 2)[0] for pool in self.pools(workload)]

    def calls(self, method: str) -> list[str]:
        """Return the pools of GKE's calls that succeeded, the oldest first."""
        calls = get_json(f"{self.addresses.buttons}/calls")["calls"]
        return [call["pool"] for call in calls if (call["method"], call["code"]) == (method, "OK")]

    def press(self, button: str, workload: str) -> None:
        """Let something happen to the hosts of a workload's only pool."""
        (pool,) = self.pools(workload)
        press(f"{self.addresses.buttons}/hosts/{button}", {"pool": pool})

    def until(self, look: Callable[[], T]) -> T:
        """Look until there is something true, and return it; if nothing comes, fail with the namespace's Events."""
        return until(look, lambda: self.kubectl("get", "events", "--sort-by=.lastTimestamp"))

    def until_over(self, jobset: str) -> None:
        self.until(lambda: self.conditions(jobset) & {"Completed", "Failed"})
        assert "Completed" in self.conditions(jobset), self.kubectl("describe", "jobset", jobset)


@contextmanager
def asked_by_a_user(stack: Stack, tools: Tools) -> Iterator[Cluster]:
    """Yield a user's commands on a stack; all share their connections."""
    with closing(Api.of(stack.addresses.kubeconfig)) as api, database(stack.addresses) as records:
        yield Cluster(stack.addresses, tools, api, records)
