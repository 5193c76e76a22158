"""Pods that request TPU and get no slice: the relay's watch of them, and the Event on their owner."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from relay.cluster import Cluster as Calls
from relay.cluster import sources, unscheduled
from relay.cluster_cache import ClusterCache
from relay.connection import Connection
from relay.health import Health
from relay.notices.unserved import TOLD_AFTER, OwnersTold, PodEvent
from relay.notices.unserved_pod import UnservedPod
from relay.objects import Aside, Kind, Leader, Listed, Saw, Unparseable, WatchEvent
from relay.watch import Patience, Watch
from tests.builders import CLUSTER
from tests.cluster.asking import LIVE, Json, done, path
from tests.cluster.builders import CONTAINER, NOBODY, TPU, chips, event, jobset, meta
from tests.cluster.servers import REAL_ALONE, Cluster
from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.testing.waiting import until

pytestmark = LIVE
LABELS = {"app": "web"}


@dataclass
class Teller:
    """The relay's watch of pods and what tells their owners, on a clock that can be put forward."""

    cluster: Cluster
    namespace: str
    ahead: timedelta = timedelta()
    waiting: set[str] = field(default_factory=set)
    cache: ClusterCache = field(default_factory=lambda: ClusterCache(CLUSTER))
    owners: OwnersTold = field(init=False)

    @property
    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    def put(self, delivered: PodEvent) -> None:
        self.owners.put(delivered)
        if isinstance(delivered, Listed):
            self._note(*delivered.seen)
        elif isinstance(delivered, Saw):
            self._note(delivered.seen)

    def sees(self, delivered: WatchEvent) -> None:
        """Take leaders as the relay's thread does."""
        seen = delivered.seen if isinstance(delivered, Listed) else (getattr(delivered, "seen", None),)
        for each in seen:
            if isinstance(each, Leader):
                self.cache.put(each)

    def _note(self, *seen: UnservedPod | Unparseable[Aside]) -> None:
        pods = [each for each in seen if isinstance(each, UnservedPod)]
        self.waiting |= {each.identity for each in pods if each.owner.namespace == self.namespace}

    def await_pods(self, number: int) -> None:
        until(lambda: len(self.waiting) == number, "the scheduler's answer")

    def events(self) -> dict[str, str]:
        """Return what Events of the relay say, by the kind of what they are about."""
        self.owners.take()
        self.owners.look()
        listed = self.cluster.api.read(path("events", self.namespace))["items"]
        return {each["involvedObject"]["kind"]: each["message"] for each in listed if each["reason"] == "NotServed"}

    def later(self) -> dict[str, str]:
        """Return what Events say once it is time to tell again, as it is after each call that failed."""
        self.ahead += TOLD_AFTER
        return self.events()


@pytest.fixture
def teller(cluster: Cluster, namespace: str) -> Iterator[Teller]:
    with Connection({"KUBECONFIG": str(cluster.kubeconfig)}) as connection:
        one = Teller(cluster, namespace)
        one.owners = OwnersTold(Calls(connection), lambda: one.now, Health(lambda: one.now), one.cache.unserved)
        patience, chance = Patience(PATIENCE_SECONDS, lambda: 0.0), random.Random(7)
        (leaders,) = (each for each in sources(connection) if each.kind is Kind.LEADERS)
        pods = Watch(unscheduled(connection), one.put, patience, chance)
        led = Watch(leaders, one.sees, patience, chance)
        running = [threading.Thread(target=run) for run in (pods.run, led.run)]
        for each in running:
            each.start()
        try:
            yield one
        finally:
            for stop, each in zip((pods.stop, led.stop), running, strict=True):
                stop()
                each.join(PATIENCE_SECONDS)
            connection.rest_client.pool_manager.clear()
        assert not any(each.is_alive() for each in running)


TEMPLATE: Json = {"metadata": {"labels": LABELS}, "spec": chips(4) | {"nodeSelector": {NOBODY: "here"}}}
"""A pod template that no host fits."""


def test_a_pod_by_itself_is_told_of_on_it_after_its_time(teller: Teller) -> None:
    teller.cluster.api.create(path("pods", teller.namespace), meta("alone") | {"spec": TEMPLATE["spec"]})
    teller.await_pods(1)
    assert teller.events() == {}
    assert until(teller.later, "the Event")["Pod"].startswith("Pod alone gets no slice: a pod by itself gets none here")


@REAL_ALONE
def test_a_deployment_is_told_of_all_its_pods_unless_gke_adds_nodes(teller: Teller) -> None:
    spec = {"replicas": 3, "selector": {"matchLabels": LABELS}, "template": TEMPLATE}
    where = path("events", teller.namespace)
    teller.cluster.api.create(path("deployments", teller.namespace), meta("web") | {"spec": spec})
    teller.await_pods(3)
    about = {"kind": "Pod", "uid": min(teller.waiting), "namespace": teller.namespace}
    said = event("helped", teller.namespace, reason="TriggeredScaleUp", lastTimestamp=f"{teller.now:%FT%TZ}")
    teller.cluster.api.create(where, said | {"involvedObject": about})
    assert teller.events() == {}
    assert teller.later() == {}
    done(teller.cluster.api.delete(path("events", teller.namespace, "helped")))
    assert [*until(teller.later, "the Event")] == ["Deployment"]
    described = teller.cluster.kubectl("describe", "deployment", "web", "-n", teller.namespace)
    assert "Deployment web gets no slice: its pods come and go one by one" in described.out


@REAL_ALONE
def test_a_jobset_whose_pods_claim_chips_as_devices_is_told_of_on_it(teller: Teller) -> None:
    """No claim is made of a template that does not exist, and the scheduler says nothing of such a pod."""
    claiming = jobset("llama", replicas=1)
    del claiming["spec"]["suspend"], claiming["spec"]["managedBy"]
    claiming["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"] |= {
        "containers": [CONTAINER | {"resources": {"claims": [{"name": "tpus"}]}}],
        "resourceClaims": [{"name": "tpus", "resourceClaimTemplateName": "all-tpus"}],
        "tolerations": [{"key": TPU, "operator": "Exists"}],
    }
    teller.cluster.api.create(path("jobsets", teller.namespace), claiming)
    until(teller.cache.unserved, "the leader")
    assert teller.events() == {}
    message = until(teller.later, "the Event")["JobSet"]
    assert message.startswith("replicatedJob slice of JobSet llama gets no slice: its pods claim chips as devices")
