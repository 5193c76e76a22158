"""The relay under its own ServiceAccount while the control plane fails: it comes back, and publishes again."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from infra.kubernetes.overlay import NAMESPACE, account_of
from infra.local.addresses import Addresses
from infra.local.plan import REPOSITORY
from infra.local.relay_account import open_account
from tests.cluster.servers import with_jobsets
from tests.kubernetes.cluster import Cluster, Json
from tests.published import Published
from tests.relay import objects
from tpu_slices.domain.model.facts import SlicesWanted
from tpu_standins.clients.api import Api
from tpu_standins.clients.errors import ApiError
from tpu_standins.kubernetes.control_plane import APISERVER, CONTROLLER_MANAGER, ETCD, SCHEDULER
from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.processes import Child, Program, Says
from tpu_standins.testing.waiting import until

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

UNAUTHORIZED = "401 Unauthorized"


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A control plane, the relay as a process beside it, and what it has published."""

    cluster: Cluster
    addresses: Addresses
    published: Published
    relay: Child

    @property
    def api(self) -> Api:
        return Api.of(self.cluster.plane.kubeconfig)

    def admit(self) -> None:
        """Apply the relay's account and role, and write a new token of it."""
        open_account(self.addresses)

    def want_a_slice(self) -> str:
        """Create a JobSet whose leader cannot be scheduled; return its UID."""
        name = f"llama-{uuid.uuid4().hex[:6]}"
        with closing(self.api) as api:
            made = until(lambda: created(api, placed(objects.jobset(name))), "a JobSet to be taken")
            job = api.create("jobs", job_of(name))
            leader = objects.pod(0, jobset=name, labels={"jobset.sigs.k8s.io/jobset-uid": made["metadata"]["uid"]})
            leader["metadata"]["ownerReferences"][0]["uid"] = job["metadata"]["uid"]
            del leader["status"]
            api.create("pods", placed(leader))
        uid: str = made["metadata"]["uid"]
        return uid

    def expect(self, uid: str) -> None:
        """Wait until the relay has published that this JobSet wants slices, and until it is ready."""
        until(lambda: uid in self.wanting(), f"the demand of {uid}")
        assert not self.relay.ended(), self.relay.output()

    def wanting(self) -> set[str]:
        return {str(fact.workload.owner.uid) for fact in self.published.pull() if isinstance(fact, SlicesWanted)}

    def kill(self, *names: str) -> list[Program]:
        """Kill these programs of the control plane; return them, to be started again."""
        found = [self.cluster.child(name) for name in names]
        for child in found:
            os.kill(child.process.pid, signal.SIGKILL)
        for child in found:
            assert child.ended(within=PATIENCE_SECONDS)
            self.cluster.processes.end(child)
        return [child.program for child in found]

    def start(self, programs: list[Program]) -> None:
        for program in programs:
            self.cluster.processes.wait_until_ready(*self.cluster.processes.start(program))


def created(api: Api, jobset: Json) -> Json:
    """Return a JobSet once it is created; nothing: the policies of an API server that starts know no JobSets yet."""
    try:
        return api.create("jobsets", jobset)
    except ApiError as refused:
        if "There can be a delay" not in str(refused):
            raise
        return {}


def job_of(jobset: str) -> Json:
    """Return the Job of a leader, which exists, but which nobody controls."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "train"}]}
    spec = {"managedBy": "example.com/nobody", "template": {"spec": pod}}
    return placed({"metadata": {"name": f"{jobset}-workers-0"}, "spec": spec})


def placed(obj: Json) -> Json:
    """Return the object as a client creates it, in a namespace that there is."""
    metadata = {key: value for key, value in obj["metadata"].items() if key not in {"uid", "resourceVersion"}}
    return obj | {"metadata": metadata | {"namespace": "default"}}


@pytest.fixture(scope="module")
def stage(cluster: Cluster, pubsub_emulator: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PUBSUB_EMULATOR_HOST", pubsub_emulator)
        with_jobsets(cluster.plane)
        published = Published(f"test-{uuid.uuid4().hex[:16]}")
        addresses = addressed(cluster, published.project, pubsub_emulator, tmp_path_factory.mktemp("relay"))
        open_account(addresses)
        [relay] = cluster.processes.start(relaying(addresses))
        cluster.processes.wait_until_ready(relay)
        yield Stage(cluster=cluster, addresses=addresses, published=published, relay=relay)
        cluster.processes.end(relay)


def addressed(cluster: Cluster, project: str, pubsub: str, folder: Path) -> Addresses:
    """Return addresses at which the relay reaches the API server without a proxy."""
    unused = "unused"
    addresses = Addresses(
        project=project,
        location=unused,
        cluster_id="demo",
        pubsub=pubsub,
        firestore=unused,
        gke=unused,
        buttons=unused,
        proxy_port=0,
        proxy_buttons=unused,
        functions={},
        folder=folder,
    )
    for path in (addresses.kubeconfig, addresses.proxy_kubeconfig):
        shutil.copy(cluster.plane.kubeconfig, path)
    return addresses


def relaying(addresses: Addresses) -> Program:
    own = {"KUBECONFIG": str(addresses.relay_kubeconfig)}
    python = {"PYTHONPATH": str(REPOSITORY), "PYTHONUNBUFFERED": "1"}
    return Program(
        name="relay",
        command=(sys.executable, "-m", "relay"),
        ready=Says("ready"),
        folder=REPOSITORY,
        environment=addresses.environment() | own | python,
    )


def test_it_publishes_under_its_own_account(stage: Stage) -> None:
    stage.admit()
    stage.expect(stage.want_a_slice())


def test_it_survives_the_death_of_the_api_server(stage: Stage) -> None:
    stage.admit()
    before = stage.want_a_slice()
    stage.expect(before)
    server = stage.kill(APISERVER)
    stage.start(server)
    stage.expect(stage.want_a_slice())


def test_it_survives_an_end_of_its_token_in_which_another_is_given(stage: Stage) -> None:
    stage.admit()
    stage.expect(stage.want_a_slice())
    with closing(stage.api) as api:
        api.delete("serviceaccounts", NAMESPACE, account_of(stage.addresses.cluster_id))
    refused = stage.relay.output().count(UNAUTHORIZED)
    stage.start(stage.kill(APISERVER))
    until(lambda: stage.relay.output().count(UNAUTHORIZED) > refused, "the refusal of its token")
    stage.admit()
    stage.expect(stage.want_a_slice())


def test_it_survives_the_loss_of_everything_that_etcd_had(stage: Stage) -> None:
    stage.admit()
    before = stage.want_a_slice()
    stage.expect(before)
    storage, *others = stage.kill(ETCD, APISERVER, CONTROLLER_MANAGER, SCHEDULER)
    shutil.rmtree(stage.cluster.plane.layout.folder / "etcd")
    stage.start([storage, others[0]])
    with closing(stage.api) as api:
        with_jobsets(stage.cluster.plane)
        stage.admit()
        stage.start(others[1:])
        with pytest.raises(ApiError, match="not found"):
            api.get("jobsets", "default", before)
    stage.expect(stage.want_a_slice())
