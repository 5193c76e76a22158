"""Every call of the relay, through its own code, with the refusals that it tells apart."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from relay.cluster import Cluster as Calls
from relay.cluster import sources
from relay.connection import Connection
from relay.objects import Kind, PoolKey
from relay.watch import Patience, Watch
from tests.builders import an_owner
from tests.cluster.asking import LIVE, Json, done, path
from tests.cluster.builders import CONTAINER, bound, event, jobset, meta, node, pod
from tests.cluster.servers import Cluster, unique
from tests.relay.recorder import Recorder
from tpu_slices.domain.model.slices import ClaimId
from tpu_slices.domain.planning.host_labels import ACCELERATOR, NODE_POOL
from tpu_slices.domain.planning.pool_labels import ATTEMPT_LABEL, OWNER, OWNER_LABEL, SLICE_ID_LABEL
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.testing.waiting import until

pytestmark = LIVE

FOR_EVER = 3600.0
"""How long a watch may be silent, in seconds: the server's bookmarks may be late."""
LEADER = {"jobset.sigs.k8s.io/jobset-name": "train", "batch.kubernetes.io/job-completion-index": "0"}


def of_pool(slice_id: str) -> Any:
    """Return the labels of a node of a slice's first pool."""
    of_gke = {ACCELERATOR: "tpu-v6e-slice", NODE_POOL: f"{slice_id}-1"}
    return {**of_gke, OWNER_LABEL: OWNER, SLICE_ID_LABEL: slice_id, ATTEMPT_LABEL: "1"}


@pytest.fixture
def connection(cluster: Cluster) -> Iterator[Connection]:
    with Connection({"KUBECONFIG": str(cluster.kubeconfig)}) as made:
        yield made
        made.rest_client.pool_manager.clear()


@pytest.fixture
def calls(connection: Connection) -> Calls:
    return Calls(connection)


class TestReading:
    def test_a_jobset_is_found_or_proven_not_to_be_there(self, cluster: Cluster, calls: Calls, namespace: str) -> None:
        made = cluster.api.create(path("jobsets", namespace), jobset())
        found = calls.workload(an_owner("train", namespace=namespace))
        assert found
        assert (found["metadata"]["uid"], found["kind"]) == (made["metadata"]["uid"], "JobSet")
        assert calls.workload(an_owner("none", namespace=namespace)) is None
        assert calls.workload(an_owner("train", namespace="nowhere")) is None

    def test_claims_and_volumes_are_found_or_not(self, cluster: Cluster, calls: Calls, namespace: str) -> None:
        spec: Json = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        cluster.api.create(path("persistentvolumeclaims", namespace), meta("data") | {"spec": spec})
        name = unique("volume")
        volume = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/tmp"}}
        cluster.api.create(path("persistentvolumes"), meta(name) | {"spec": volume})
        claim, found = calls.volume_claim(namespace, "data"), calls.volume(name)
        assert claim
        assert found
        assert claim["spec"]["accessModes"] == ["ReadWriteOnce"]
        assert found["spec"]["capacity"] == {"storage": "1Gi"}
        assert (calls.volume_claim(namespace, "none"), calls.volume(unique("none"))) == (None, None)

    def test_a_deployment_is_found_or_not(self, cluster: Cluster, calls: Calls, namespace: str) -> None:
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [CONTAINER]}}
        spec = {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template}
        cluster.api.create(path("deployments", namespace), meta("web") | {"spec": spec})
        found = calls.deployment(namespace, "web")
        assert found
        assert found["spec"]["replicas"] == 0
        assert calls.deployment(namespace, "none") is None

    def test_a_replica_set_is_found_or_not(self, cluster: Cluster, calls: Calls, namespace: str) -> None:
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [CONTAINER]}}
        spec = {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template}
        cluster.api.create(path("replicasets", namespace), meta("web-1") | {"spec": spec})
        found = calls.replica_set(namespace, "web-1")
        assert found
        assert found["spec"]["replicas"] == 0
        assert calls.replica_set(namespace, "none") is None

    def test_only_the_cluster_autoscalers_events_are_listed(
        self, cluster: Cluster, calls: Calls, namespace: str
    ) -> None:
        for name, reason in (("one", "TriggeredScaleUp"), ("two", "NotTriggerScaleUp")):
            cluster.api.create(path("events", namespace), event(name, namespace, reason=reason))
        assert [each["metadata"]["name"] for each in calls.scale_ups(namespace)] == ["one"]

    def test_the_nodes_of_a_pool_are_listed(self, cluster: Cluster, calls: Calls) -> None:
        slice_id, host = unique("tpu"), unique("host")
        cluster.api.create(path("nodes"), node(host, **of_pool(slice_id)))
        assert calls.nodes_of(PoolKey(ClaimId(slice_id), 1)) == {host}
        assert calls.nodes_of(PoolKey(ClaimId(slice_id), 2)) == frozenset()

    @pytest.mark.parametrize("exactly", [True, False])
    def test_the_pods_that_hold_chips_of_a_node_and_have_not_ended_are_listed(
        self, cluster: Cluster, calls: Calls, namespace: str, exactly: bool
    ) -> None:
        host, chips = unique("host"), {"resources": {"limits": {"google.com/tpu": "4"}}}
        cluster.api.create(path("nodes"), node(host))
        for name in ("leads", "follows", "ended"):
            labels = LEADER if name == "leads" else {}
            made = bound(name, host, labels=labels)
            containers = [{**each, **chips} for each in made["spec"]["containers"]]
            cluster.api.create(path("pods", namespace), {**made, "spec": {**made["spec"], "containers": containers}})
        cluster.api.create(path("pods", namespace), bound("without-chips", host))
        done(cluster.api.patch(path("pods", namespace, "ended", "status"), {"status": {"phase": "Succeeded"}}))
        expected = {f"{namespace}/leads", f"{namespace}/follows"}
        until(lambda: {each.pod for each in calls.chip_pods_on(host, exactly=exactly)} == expected, "the pods")


class TestEvents:
    def test_one_is_created_once_and_renewed(self, cluster: Cluster, calls: Calls, namespace: str) -> None:
        where = path("events", namespace, "one")
        calls.post(event("one", namespace, count=1))
        calls.post(event("one", namespace, count=1))
        calls.renew(event("one", namespace, count=2, message="more"))
        assert [cluster.api.read(where)[key] for key in ("count", "message")] == [2, "more"]
        done(cluster.api.delete(where))
        calls.renew(event("one", namespace, count=3))
        assert cluster.api.read(where)["count"] == 3

    def test_none_is_needed_where_the_namespace_is_gone_or_going(
        self, cluster: Cluster, calls: Calls, namespace: str
    ) -> None:
        calls.post(event("one", "nowhere"))
        calls.renew(event("one", "nowhere"))
        held = path("configmaps", namespace, "held")
        cluster.api.create(path("configmaps", namespace), meta("held", finalizers=["example.com/a"]))
        done(cluster.api.delete(path("namespaces", name=namespace)))
        calls.post(event("one", namespace))
        done(cluster.api.patch(held, {"metadata": {"finalizers": None}}))

    def test_one_that_cannot_be_is_refused_for_good(self, calls: Calls, namespace: str) -> None:
        stray = event("one", namespace) | {"involvedObject": {"kind": "Pod", "namespace": "elsewhere"}}
        with pytest.raises(Permanent, match="422"):
            calls.post(stray)


class TestPatchingNodes:
    def test_labels_and_taints_are_set_and_removed(self, cluster: Cluster, calls: Calls) -> None:
        host = unique("host")
        cluster.api.create(path("nodes"), node(host, mine="yes"))
        taint = {"key": "a", "value": "b", "effect": "NoSchedule"}
        calls.patch_node(host, {"metadata": {"labels": {"theirs": "yes"}}, "spec": {"taints": [taint]}})
        calls.patch_node(host, {"metadata": {"labels": {"mine": None}}, "spec": {"unschedulable": True}})
        found = cluster.api.read(path("nodes", name=host))
        assert (found["metadata"]["labels"], found["spec"]["unschedulable"]) == ({"theirs": "yes"}, True)
        assert taint in found["spec"]["taints"]

    def test_a_conflict_and_a_missing_node_are_seen_by_the_watch(self, cluster: Cluster, calls: Calls) -> None:
        host = unique("host")
        old = cluster.api.create(path("nodes"), node(host))["metadata"]["resourceVersion"]
        calls.patch_node(host, {"metadata": {"labels": {"a": "1"}}})
        calls.patch_node(host, {"metadata": {"labels": {"a": "2"}, "resourceVersion": old}})
        calls.patch_node(unique("none"), {"metadata": {"labels": {"a": "1"}}})
        assert cluster.api.read(path("nodes", name=host))["metadata"]["labels"]["a"] == "1"

    def test_a_label_that_is_none_is_refused_for_good(self, cluster: Cluster, calls: Calls) -> None:
        host = unique("host")
        cluster.api.create(path("nodes"), node(host))
        with pytest.raises(Permanent, match="422"):
            calls.patch_node(host, {"metadata": {"labels": {"a b": "c"}}})


def test_a_cluster_that_does_not_know_the_relay_is_temporary(cluster: Cluster, tmp_path: Any) -> None:
    unknown = tmp_path / "kubeconfig"
    unknown.write_text(cluster.kubeconfig.read_text().replace(cluster.api.token, "unknown"))
    with Connection({"KUBECONFIG": str(unknown)}) as connection:
        with pytest.raises(Temporary, match="401"):
            Calls(connection).workload(an_owner("train", namespace="default"))
        connection.rest_client.pool_manager.clear()


def test_a_watch_is_listed_once_and_follows_every_change(cluster: Cluster, connection: Connection) -> None:
    recorder = Recorder(Kind.HOSTS)
    [source] = [each for each in sources(connection) if each.kind is Kind.HOSTS]
    watch = Watch(source, recorder.put, Patience(FOR_EVER, lambda: 0.0), random.Random(7))
    running = threading.Thread(target=watch.run)
    running.start()
    try:
        recorder.until(lambda: bool(recorder.lists))
        hosts = [unique("host") for _ in range(3)]
        for host in hosts:
            cluster.api.create(path("nodes"), node(host, **of_pool("tpu-llama-0-aaaaaaaaaaaaa")))
            for ready in ("False", "True"):
                status = {"status": {"conditions": [{"type": "Ready", "status": ready}]}}
                done(cluster.api.patch(path("nodes", name=host, subresource="status"), status))
        recorder.until(lambda: set(hosts) <= set(recorder.present))
        done(cluster.api.delete(path("nodes", name=hosts[0])))
        recorder.until(lambda: hosts[0] not in recorder.present)
        assert (len(recorder.lists), recorder.failures) == (1, [])
    finally:
        watch.stop()
        running.join(PATIENCE_SECONDS)
    assert not running.is_alive()


def test_leaders_are_watched_as_their_job_makes_them(cluster: Cluster, connection: Connection, namespace: str) -> None:
    [source] = [each for each in sources(connection) if each.kind is Kind.LEADERS]
    cluster.api.create(path("pods", namespace), pod("leads", labels=LEADER))
    cluster.api.create(path("pods", namespace), pod("other"))
    answer: Any = source.fetch(_preload_content=False)
    assert f'"{namespace}"'.encode() in answer.data
    assert b'"other"' not in answer.data
    until(lambda: cluster.api.get(path("pods", namespace, "leads")).code == 200, "the leader")


def test_pods_of_jobs_without_indexes_are_watched_until_they_end(
    cluster: Cluster, connection: Connection, namespace: str
) -> None:
    [source] = [each for each in sources(connection) if each.kind is Kind.UNINDEXED]
    of_a_job = {"batch.kubernetes.io/job-name": "tune"}
    cluster.api.create(path("pods", namespace), pod("runs", labels=of_a_job))
    cluster.api.create(path("pods", namespace), pod("indexed", labels=LEADER | of_a_job))
    cluster.api.create(path("pods", namespace), pod("ended", labels=of_a_job))
    done(cluster.api.patch(path("pods", namespace, "ended", "status"), {"status": {"phase": "Succeeded"}}))
    answer: Any = source.fetch(_preload_content=False)
    names = [(each["metadata"]["namespace"], each["metadata"]["name"]) for each in json.loads(answer.data)["items"]]
    assert [name for where, name in names if where == namespace] == ["runs"]
