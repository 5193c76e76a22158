"""`kubectl apply` and `kubectl delete` of TPU operator's manifest, on a real API server.

The relay is a process with its own account, Pub/Sub its emulator, the functions are the production code; simulated are
Firestore, Compute Engine and kubelets.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import orjson
import pytest
import yaml

from infra.kubernetes.overlay import NAMESPACE, account_of
from infra.local.relay_account import manifests
from tests.cluster.accounts import token_of
from tests.cluster.asking import Api, done, path
from tests.cluster.servers import PATIENT
from tests.domain.planning.test_node_groups import self_managed
from tests.kubernetes.cluster import NODE_GROUPS, Cluster, Json
from tests.kubernetes.test_relay_recovers import addressed, relaying
from tests.node_groups import PROJECT, two_hosts
from tests.published import Published
from tpu_slices.adapters.pubsub import PubSubPublisher, connect_publisher
from tpu_slices.domain.model.observations import Creating, Deleting
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.wire.workloads import CHIPS
from tpu_slices_simulator import objects
from tpu_slices_simulator.system import System
from tpu_standins.kubeconfig import for_token_file
from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.processes import Child
from tpu_standins.testing.waiting import until

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

HOSTS_IN = f"projects/{PROJECT}/locations/us-central1"
NAME = "my-tpu-node-group"
GROUP = f"/apis/tpu.google.com/v1alpha1/namespaces/default/tpunodegroups/{NAME}"


@dataclass
class Functions(System):
    """The functions, fed by what the relay publishes; what they say goes to the relay."""

    published: Published
    admin: Api
    held: bool = True
    """Whether operations on pools run on and on, until what is told of them was seen."""
    ahead: timedelta = timedelta()
    """By how much the functions' clock is ahead, so that nobody has to wait for what takes minutes."""

    def __post_init__(self) -> None:
        super().__init__(self_managed(), datetime.now(UTC))
        self.relay_is_dead = True  # the one in memory
        self._send = PubSubPublisher(connect_publisher(PATIENCE_SECONDS), self.published.project, PATIENCE_SECONDS)
        self._received = self._said = self._asked = 0
        self._swept_at = self.clock.now()

    def turn(self) -> None:
        """Let everything happen that can: facts arrive, slices are decided, operations end unless they are held."""
        facts = self.published.pull()
        for fact in facts[self._received :]:
            self.publish(fact)
        self._received = len(facts)
        self.clock.advance(datetime.now(UTC) + self.ahead - self.clock.now())
        self.deliver()
        for pool in [] if self.held else list(self.backend.pools.values()):
            if isinstance(pool.seen, Creating | Deleting) and pool.operation is not None:
                self.backend.finish(pool.name)
        if self.clock.now() - self._swept_at > timedelta(seconds=1):
            self._swept_at = self.clock.now()
            self.publisher.request_reconcile(self.settings.cluster, list(self.records))
        self.deliver()
        self._hosts_join()
        for cluster, update in self.publisher.node_groups[self._said :]:
            self._send.announce_node_group(cluster, update)
        for cluster, question in self.publisher.questions[self._asked :]:
            self._send.ask(cluster, [question])
        self._said, self._asked = len(self.publisher.node_groups), len(self.publisher.questions)

    def _hosts_join(self) -> None:
        """Register the hosts of groups as kubelets do."""
        for pool in self.backend.pools.values():
            order = pool.order
            if not pool.hosts_joined or order is None or order.spec is None:
                continue
            for number in range(order.spec.hosts):
                node = objects.node_of(order, number)
                where = path("nodes", name=node["metadata"]["name"])
                if self.admin.ask("GET", where).code == 404:
                    provider = f"gce://{PROJECT}/{order.spec.zone}/{node['metadata']['name']}"
                    labels = {**node["metadata"]["labels"], "kubernetes.io/hostname": node["metadata"]["name"]}
                    meta = {"name": node["metadata"]["name"], "labels": labels}
                    self.admin.create(path("nodes"), {"metadata": meta, "spec": {"providerID": provider}})
                    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}
                    amount = {CHIPS: str(order.spec.chips_per_host)}
                    status = {"conditions": [ready], "capacity": amount, "allocatable": amount}
                    done(self.admin.patch(f"{where}/status", {"status": status}))

    @property
    def slice(self) -> SliceRecord:
        [record] = self.records.values()
        return record


@dataclass(frozen=True)
class Stage:
    cluster: Cluster
    admin: Api
    functions: Functions
    relay: Child

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        said = self.cluster.kubectl(*arguments, stdin=stdin)
        assert said.code == 0, said.error
        return said.out

    def group(self) -> Json | None:
        answer = self.admin.ask("GET", GROUP)
        return answer.body if answer.code == 200 else None

    def reason(self) -> str:
        """Return the reason of Ready; empty if there is none."""
        conditions = ((self.group() or {}).get("status") or {}).get("conditions", ())
        return next((each["reason"] for each in conditions if each["type"] == "Ready"), "")

    def events(self) -> set[str]:
        """Return the reasons of the Events on the group."""
        said = self.admin.read(path("events", "default"), fieldSelector=f"involvedObject.name={NAME}")["items"]
        return {each["reason"] for each in said}

    def until(self, happened: Callable[[], bool], what: str) -> None:
        def looked() -> bool:
            self.functions.turn()
            return happened()

        until(looked, lambda: f"{what}: {self.relay.output()[-2000:]}")

    def until_reason(self, reason: str) -> None:
        self.until(lambda: self.reason() == reason, f"the reason {reason}")


@pytest.fixture
def stage(cluster: Cluster, pubsub_emulator: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    text = yaml.safe_dump_all(manifests("demo", hosts_in=HOSTS_IN))
    applied = cluster.apply("-f", "-", stdin=text)
    assert (applied.code, applied.error) == (0, "")
    cluster.knows(NODE_GROUPS)
    with pytest.MonkeyPatch.context() as patch, closing(Api(cluster.plane.kubeconfig)) as admin:
        patch.setenv("PUBSUB_EMULATOR_HOST", pubsub_emulator)
        published = Published(f"test-{uuid.uuid4().hex[:16]}")
        addresses = addressed(cluster, published.project, pubsub_emulator, tmp_path_factory.mktemp("relay"))
        addresses.relay_token.write_text(token_of(admin, NAMESPACE, account_of("demo")))
        kubeconfig = for_token_file(cluster.plane.kubeconfig.read_text(), addresses.relay_token)
        addresses.relay_kubeconfig.write_text(kubeconfig)
        program = relaying(addresses)
        program = replace(program, environment={**program.environment, "HOSTS_IN": HOSTS_IN})
        [relay] = cluster.processes.start(program)
        cluster.processes.wait_until_ready(relay)
        yield Stage(cluster, admin, Functions(published, admin), relay)
        cluster.processes.end(relay)
    cluster.empty()


def test_a_manifest_of_tpu_operator_becomes_a_slice_and_goes_with_it(stage: Stage) -> None:
    stage.kubectl("apply", "-f", "-", stdin=orjson.dumps(two_hosts()).decode())
    stage.until_reason("Provisioning")
    stage.functions.held = False
    stage.until_reason("Ready")
    stage.kubectl("wait", f"tng/{NAME}", "--for=condition=Ready", PATIENT)
    assert len(stage.functions.pools) == 1
    nodes = stage.kubectl("get", "nodes", "-l", f"cloud.google.com/tpu-node-group-name={NAME}", "-o", "name")
    assert len(nodes.split()) == 2

    stage.functions.held = True
    assert stage.cluster.kubectl("delete", "tng", NAME, "--timeout=1s").code == 1
    group = stage.group()
    assert group
    assert "deletionTimestamp" in group["metadata"]
    stage.functions.ahead = timedelta(minutes=3)  # a creation that was requested moments ago may still take effect
    stage.until(lambda: "Cleanup" in stage.events(), "the Event that a deletion begins")
    stage.functions.held = False
    stage.until(lambda: stage.group() is None, "the object to go")
    assert stage.functions.pools == []
    assert (
        stage.kubectl("get", "nodes", "-l", f"google.com/tpu-slice-id={stage.functions.slice.maker}", "-o", "name")
        == ""
    )
    assert {"ChildResourcesProvisioned", "Provisioned", "Cleanup"} <= stage.events()
