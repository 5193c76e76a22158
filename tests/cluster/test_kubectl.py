"""Everyday kubectl: the newest on both servers, the oldest on ours. Words are compared where kubectl says them."""

from __future__ import annotations

import dataclasses
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from typing import IO

import pytest

from tests.cluster.asking import LIVE, Json, path
from tests.cluster.builders import bound, event, job, jobset, meta, node, owned_by, pod
from tests.cluster.servers import EMBEDDED, KUBECTLS, PATIENT, REAL, Cluster, unique
from tpu_standins.testing.waiting import LATEST_SECONDS

pytestmark = LIVE

PAIRS = [(REAL, KUBECTLS[-1]), *((EMBEDDED, each) for each in KUBECTLS)]


@pytest.fixture(params=PAIRS, ids=lambda pair: f"{pair[0]}-{pair[1].name}")
def cluster(request: pytest.FixtureRequest) -> Cluster:
    server, program = request.param
    found: Cluster = request.getfixturevalue(server)
    return dataclasses.replace(found, program=program)


def core(kind: str, obj: Json, namespace: str = "") -> Json:
    within = {"namespace": namespace} if namespace else {}
    return {"apiVersion": "v1", "kind": kind} | obj | {"metadata": obj["metadata"] | within}


def train(namespace: str, *, suspended: bool = True) -> Json:
    return jobset(namespace=namespace, spec={"suspend": suspended})


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


@contextmanager
def running(cluster: Cluster, *arguments: str) -> Iterator[IO[str]]:
    """Run a kubectl that keeps running; yield its output."""
    with subprocess.Popen(cluster.command(*arguments), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout
        finally:
            process.terminate()


class TestApplying:
    def test_a_jobset_is_applied_again_and_changed(self, cluster: Cluster, namespace: str) -> None:
        """The webhook completes what is created only: the second apply leaves out again what it added."""
        written = train(namespace)
        said = [cluster.kubectl("apply", "-f-", stdin=written).out.split()[-1] for _ in range(3)]
        assert said == ["created", said[1], "unchanged"]
        for labels in ({"team": "a"}, {}):
            written["metadata"]["labels"] = labels
            assert cluster.kubectl("apply", "-f-", stdin=written).out.split()[-1] == "configured"
            assert cluster.json("get", "jobset", "train", "-n", namespace)["metadata"].get("labels", {}) == labels

    def test_objects_of_many_kinds_are_applied_together(self, cluster: Cluster, namespace: str) -> None:
        config = core("ConfigMap", meta("settings") | {"data": {"a": "b"}}, namespace)
        work = {"apiVersion": "batch/v1", "kind": "Job"} | job(namespace=namespace)
        for verb in ("created", "unchanged"):
            said = cluster.kubectl("apply", "-f-", stdin=[config, work, core("Pod", pod(), namespace)])
            assert rows(said.out) == [["configmap/settings", verb], ["job.batch/work", verb], ["pod/one", verb]], said

    def test_a_change_is_rehearsed_before_it_is_made(self, cluster: Cluster, namespace: str) -> None:
        cluster.kubectl("apply", "-f-", stdin=train(namespace))
        changed = train(namespace, suspended=False)
        shown = cluster.kubectl("diff", "-f-", stdin=changed)
        assert (shown.code, "+  suspend: false" in shown.out) == (1, True), shown
        assert "configured (server dry run)" in cluster.kubectl("apply", "--dry-run=server", "-f-", stdin=changed).out

    def test_an_object_is_applied_server_side_and_again(self, cluster: Cluster, namespace: str) -> None:
        for kind, obj in (
            ("pod/one", core("Pod", pod(), namespace)),
            ("jobset.jobset.x-k8s.io/train", train(namespace)),
        ):
            for _ in range(2):
                said = cluster.kubectl("apply", "--server-side", "-f-", stdin=obj)
                assert (said.out, said.error) == (f"{kind} serverside-applied\n", "")

    def test_an_object_moves_from_client_side_to_server_side(self, cluster: Cluster, namespace: str) -> None:
        cluster.kubectl("apply", "-f-", stdin=core("Pod", pod(labels={"a": "1"}), namespace))
        moved = core("Pod", pod(labels={"a": "2"}), namespace)
        said = cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f-", stdin=moved)
        assert said.out == "pod/one serverside-applied\n"
        assert cluster.json("get", "pod", "one", "-n", namespace)["metadata"]["labels"] == {"a": "2"}

    def test_an_unknown_kind_is_not_there(self, cluster: Cluster) -> None:
        assert "the server doesn't have a resource type" in cluster.kubectl("get", "nonesuch").error


class TestShowing:
    def test_tables_have_the_columns_people_know(self, cluster: Cluster, namespace: str) -> None:
        cluster.kubectl("apply", "-f-", stdin=[train(namespace), core("Pod", pod(), namespace)])
        wide = rows(cluster.kubectl("get", "pods", "-n", namespace, "-o", "wide").out)
        assert wide[0][:7] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE"]
        assert wide[1][:4] == ["one", "0/1", "Pending", "0"]
        assert rows(cluster.kubectl("get", "jobsets", "-n", namespace).out)[1][0] == "train"
        assert cluster.kubectl("get", "pods", "-n", namespace, "-o", "name").out == "pod/one\n"
        assert "No resources found" in cluster.kubectl("get", "services", "-n", namespace).error

    def test_a_node_shows_whether_it_takes_pods(self, cluster: Cluster) -> None:
        host = unique("host")
        cluster.api.create(path("nodes"), node(host))
        [shown] = rows(cluster.kubectl("get", "node", host, "--no-headers").out)
        assert (shown[0], shown[1].split(",")[0] in {"NotReady", "Unknown"}) == (host, True)

    def test_an_object_is_shown_as_yaml(self, cluster: Cluster, namespace: str) -> None:
        cluster.kubectl("apply", "-f-", stdin=train(namespace))
        shown = cluster.kubectl("get", "jobset", "train", "-n", namespace, "-o", "yaml").out
        assert "kind: JobSet" in shown
        assert "managedFields" not in shown

    def test_describe_shows_the_events_of_this_very_object(self, cluster: Cluster, namespace: str) -> None:
        cluster.kubectl("apply", "-f-", stdin=train(namespace))
        uid = cluster.json("get", "jobset", "train", "-n", namespace)["metadata"]["uid"]
        about = {"kind": "JobSet", "apiVersion": "jobset.x-k8s.io/v1alpha2", "name": "train", "namespace": namespace}
        for name, of in (("mine", uid), ("other", "of-an-earlier-one")):
            said = event(name, namespace, message=f"said of {name}", involvedObject=about | {"uid": of})
            cluster.api.create(path("events", namespace), said)
        shown = cluster.kubectl("describe", "jobset", "train", "-n", namespace).out
        assert ("said of mine" in shown, "said of other" in shown) == (True, False)

    def test_pods_and_nodes_are_described(self, cluster: Cluster, namespace: str) -> None:
        host = unique("host")
        cluster.api.create(path("nodes"), node(host))
        cluster.api.create(path("pods", namespace), bound("one", host))
        assert f"{host}/" in cluster.kubectl("describe", "pod", "one", "-n", namespace).out
        shown = cluster.kubectl("describe", "node", host)
        assert (shown.code, "(1 in total)" in shown.out) == (0, True), shown

    def test_the_events_of_one_object_are_listed(self, cluster: Cluster, namespace: str) -> None:
        for name in ("one", "other"):
            about = {"kind": "ConfigMap", "apiVersion": "v1", "name": name, "namespace": namespace}
            said = event(name, namespace, message=f"said of {name}", involvedObject=about)
            cluster.api.create(path("events", namespace), said)
        assert len(rows(cluster.kubectl("events", "-n", namespace, "--no-headers").out)) == 2
        shown = cluster.kubectl("events", "-n", namespace, "--for=configmap/other").out
        assert ("said of other" in shown, "said of one" in shown) == (True, False)

    def test_objects_are_chosen_by_labels_and_fields(self, cluster: Cluster, namespace: str) -> None:
        for name, app in (("one", "a"), ("two", "b")):
            cluster.api.create(path("pods", namespace), pod(name, labels={"app": app}))
        chosen = ("get", "pods", "-n", namespace, "-o", "name")
        assert cluster.kubectl(*chosen, "-l", "app in (a)").out == "pod/one\n"
        assert cluster.kubectl(*chosen, "--field-selector=metadata.name=two,status.phase=Pending").out == "pod/two\n"
        assert cluster.kubectl("get", "pods", "-A", "-l", "app=a", "-o", "name").code == 0

    def test_there_are_no_logs_of_a_pod_without_a_kubelet(self, cluster: Cluster, namespace: str) -> None:
        cluster.api.create(path("pods", namespace), pod())
        assert cluster.kubectl("logs", "one", "-n", namespace).out == ""
        assert "NotFound" in cluster.kubectl("logs", "two", "-n", namespace).error
        assert "container other is not valid" in cluster.kubectl("logs", "one", "-n", namespace, "-c", "other").error


class TestChanging:
    def test_labels_and_annotations_come_and_go(self, cluster: Cluster, namespace: str) -> None:
        cluster.api.create(path("jobsets", namespace), jobset())
        of_train = ("jobset", "train", "-n", namespace)
        assert cluster.kubectl("label", *of_train, "team=a").out.endswith("train labeled\n")
        assert "--overwrite" in cluster.kubectl("label", *of_train, "team=b").error
        assert cluster.kubectl("annotate", *of_train, "note=x", "--overwrite").code == 0
        cluster.kubectl("label", *of_train, "team-")
        metadata = cluster.json("get", *of_train)["metadata"]
        assert (metadata.get("labels", {}), metadata["annotations"]["note"]) == ({}, "x")

    def test_a_node_is_cordoned_tainted_and_labelled(self, cluster: Cluster) -> None:
        host = unique("host")
        cluster.api.create(path("nodes"), node(host))
        assert cluster.kubectl("cordon", host).out == f"node/{host} cordoned\n"
        assert cluster.kubectl("taint", "node", host, "a=b:NoSchedule").out == f"node/{host} tainted\n"
        assert cluster.kubectl("label", "node", host, "x=y").out == f"node/{host} labeled\n"
        shown = cluster.json("get", "node", host)
        assert (shown["spec"]["unschedulable"], shown["metadata"]["labels"]["x"]) == (True, "y")
        assert "a" in {taint["key"] for taint in shown["spec"]["taints"]}
        assert cluster.kubectl("uncordon", host).out == f"node/{host} uncordoned\n"
        assert cluster.kubectl("taint", "node", host, "a-").out == f"node/{host} untainted\n"

    def test_a_jobset_is_edited_by_each_kind_of_patch(self, cluster: Cluster, namespace: str) -> None:
        cluster.api.create(path("jobsets", namespace), jobset())
        patch = ("patch", "jobset", "train", "-n", namespace)
        assert cluster.kubectl(*patch, "--type=merge", "-p", '{"spec":{"suspend":false}}').code == 0
        replaced = '[{"op":"replace","path":"/spec/suspend","value":true}]'
        assert cluster.kubectl(*patch, "--type=json", "-p", replaced).code == 0
        flags = ("--subresource=status", "--type=merge", "-p", '{"status":{"restarts":1}}')
        assert cluster.kubectl(*patch, *flags).code == 0
        shown = cluster.json("get", "jobset", "train", "-n", namespace)
        assert (shown["spec"]["suspend"], shown["status"]["restarts"]) == (True, 1)

    def test_namespaces_and_accounts_have_commands_of_their_own(self, cluster: Cluster) -> None:
        name = unique("team")
        assert cluster.kubectl("create", "namespace", name).out == f"namespace/{name} created\n"
        assert cluster.kubectl("create", "serviceaccount", "me", "-n", name).out == "serviceaccount/me created\n"
        assert cluster.json("get", "sa", "me", "-n", name)["metadata"]["name"] == "me"

    def test_a_token_is_created(self, cluster: Cluster, namespace: str) -> None:
        cluster.api.create(path("serviceaccounts", namespace), meta("relay"))
        said = cluster.kubectl("create", "token", "relay", "-n", namespace, "--duration=10m")
        assert (said.code, len(said.out.split("."))) == (0, 3), said
        nobody = cluster.kubectl("create", "token", "nobody", "-n", namespace)
        assert 'serviceaccounts "nobody" not found' in nobody.error


class TestDeleting:
    def test_a_deletion_is_waited_for(self, cluster: Cluster, namespace: str) -> None:
        cluster.api.create(path("jobsets", namespace), jobset())
        gone = cluster.kubectl("delete", "jobset", "train", "-n", namespace, "--wait")
        assert (gone.code, '"train" deleted' in gone.out) == (0, True)
        assert "NotFound" in cluster.kubectl("get", "jobset", "train", "-n", namespace).error

    def test_a_deletion_waits_for_a_finalizer_only_if_asked(self, cluster: Cluster, namespace: str) -> None:
        cluster.api.create(path("pods", namespace), pod(finalizers=["example.com/wait"]))
        assert cluster.kubectl("delete", "pod", "one", "-n", namespace, "--timeout=1s").code == 1
        assert "deletionTimestamp" in cluster.api.read(path("pods", namespace, "one"))["metadata"]
        assert cluster.kubectl("delete", "pod", "one", "-n", namespace, "--wait=false").code == 0
        free = '[{"op":"remove","path":"/metadata/finalizers"}]'
        cluster.kubectl("patch", "pod", "one", "-n", namespace, "--type=json", "-p", free)
        assert "NotFound" in cluster.kubectl("get", "pod", "one", "-n", namespace).error

    @pytest.mark.parametrize(("cascade", "left"), [("background", 0), ("foreground", 0), ("orphan", 1)])
    def test_dependents_go_or_stay(self, cluster: Cluster, namespace: str, cascade: str, left: int) -> None:
        owner = cluster.api.create(path("jobsets", namespace), jobset())
        cluster.api.create(path("configmaps", namespace), meta("mine", **owned_by(owner, blocks=True)))
        gone = cluster.kubectl("delete", "jobset", "train", "-n", namespace, f"--cascade={cascade}", PATIENT)
        assert gone.code == 0
        if left == 0:
            waiting = ("wait", "--for=delete", "configmap/mine", "-n", namespace, PATIENT)
            assert cluster.kubectl(*waiting).code == 0
        found = rows(cluster.kubectl("get", "configmaps", "-n", namespace, "-o", "name").out)
        assert found.count(["configmap/mine"]) == left

    def test_a_pod_is_deleted_by_force(self, cluster: Cluster, namespace: str) -> None:
        host = unique("host")
        cluster.api.create(path("nodes"), node(host))
        cluster.api.create(path("pods", namespace), bound("one", host))
        cluster.kubectl("delete", "pod", "one", "-n", namespace, "--grace-period=0", "--force")
        assert "NotFound" in cluster.kubectl("get", "pod", "one", "-n", namespace).error

    def test_a_node_is_drained(self, cluster: Cluster, namespace: str) -> None:
        host = unique("host")
        cluster.api.create(path("nodes"), node(host))
        owner = cluster.api.create(path("jobsets", namespace), jobset())  # a Job would let go of a pod unlike its own
        cluster.api.create(path("pods", namespace), bound("one", host, **owned_by(owner)))
        rehearsed = cluster.kubectl("drain", host, "--dry-run=server")
        assert f"evicting pod {namespace}/one (server dry run)" in rehearsed.out, rehearsed
        drained = cluster.kubectl("drain", host, "--grace-period=0", PATIENT)
        assert (drained.code, f"node/{host} drained" in drained.out) == (0, True), drained
        assert cluster.api.get(path("pods", namespace, "one")).code == 404
        assert cluster.json("get", "node", host)["spec"]["unschedulable"] is True


def changes(cluster: Cluster, namespace: str, labels: Json) -> None:
    for name in ("one", "two"):
        cluster.api.patch(path("pods", namespace, name), {"metadata": {"labels": labels}})


def run(cluster: Cluster, namespace: str, number: int) -> None:
    cluster.api.patch(path("pods", namespace, "one", "status"), {"status": {"phase": "Running"}})
    cluster.api.patch(path("pods", namespace, "one"), {"metadata": {"labels": {"number": str(number)}}})


@contextmanager
def repeating(step: Callable[[int], None]) -> Iterator[None]:
    """Repeat a step, with its number, until the block ends."""
    over = threading.Event()

    def steps() -> None:
        for number in count():
            step(number)
            if over.wait(LATEST_SECONDS):
                return

    with ThreadPoolExecutor(1) as pool:
        repeated = pool.submit(steps)
        try:
            yield
        finally:
            over.set()
        repeated.result()


class TestWatching:
    """A change is repeated until it is seen: the watch of kubectl 1.27 begins some time after the first line."""

    def test_changes_are_seen_as_they_come(self, cluster: Cluster, namespace: str) -> None:
        cluster.api.create(path("pods", namespace), pod())
        with running(cluster, "get", "pods", "-n", namespace, "-w") as lines:
            assert lines.readline().split()[0] == "NAME"
            assert lines.readline().split()[:3] == ["one", "0/1", "Pending"]
            with repeating(lambda number: run(cluster, namespace, number)):
                assert lines.readline().split()[:3] == ["one", "0/1", "Running"]

    def test_one_object_is_followed(self, cluster: Cluster, namespace: str) -> None:
        for name in ("one", "two"):
            cluster.api.create(path("pods", namespace), pod(name))
        with running(cluster, "get", "pod", "two", "-n", namespace, "-w", "--no-headers") as lines:
            assert lines.readline().split()[0] == "two"
            with repeating(lambda number: changes(cluster, namespace, {"number": str(number)})):
                assert lines.readline().split()[0] == "two"

    def test_a_condition_is_waited_for(self, cluster: Cluster, namespace: str) -> None:
        cluster.api.create(path("jobsets", namespace), jobset())
        waiting = ("wait", "jobset/train", "-n", namespace, "--for=condition=Completed", PATIENT)
        with running(cluster, *waiting) as lines:
            at = "2026-01-01T00:00:00Z"
            condition = {"type": "Completed", "status": "True", "reason": "R", "message": "", "lastTransitionTime": at}
            status = {"status": {"conditions": [condition]}}
            cluster.api.patch(path("jobsets", namespace, "train", "status"), status)
            assert "condition met" in lines.readline()
