"""The local API server as people use it: through kubectl."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import pytest

from tests.local.cluster.served import Served
from tests.local.cluster.world import EXCLUSIVE, POOL, jobset, node, pod

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket, pytest.mark.timeout(60)]


def manifest(namespace: str, name: str = "train", **spec: Any) -> dict[str, Any]:
    """Return a JobSet as people write it, with the webhook's defaults where a second apply needs them."""
    written = jobset(name, **spec) | {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet"}
    written["metadata"] = {"name": name, "namespace": namespace, "annotations": {EXCLUSIVE: POOL}}
    replicated = written["spec"]["replicatedJobs"][0]
    replicated["groupName"] = "default"
    job = replicated["template"]["spec"]
    job["completionMode"] = "Indexed"
    pods = job["template"]["spec"]
    pods["restartPolicy"] = "Never"
    pods["containers"][0]["resources"]["limits"] = {"google.com/tpu": "4"}
    return written


def core(kind: str, obj: dict[str, Any], namespace: str) -> dict[str, Any]:
    written = {"apiVersion": "v1", "kind": kind} | obj
    written["metadata"] |= {"namespace": namespace}
    return written


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_a_jobset_is_applied_again_and_changed(client: Served) -> None:
    written = manifest(client.namespace())
    assert "jobset.jobset.x-k8s.io/train created" in client.kubectl("apply", "-f-", stdin=written).out
    assert "jobset.jobset.x-k8s.io/train unchanged" in client.kubectl("apply", "-f-", stdin=written).out
    written["metadata"]["labels"] = {"team": "a"}
    assert "jobset.jobset.x-k8s.io/train configured" in client.kubectl("apply", "-f-", stdin=written).out


def test_a_change_is_rehearsed_before_it_is_made(client: Served) -> None:
    written = manifest(client.namespace())
    client.kubectl("apply", "-f-", stdin=written)
    written["spec"]["suspend"] = True
    shown = client.kubectl("diff", "-f-", stdin=written)
    assert (shown.code, "+  suspend: true" in shown.out) == (1, True)
    assert "configured (server dry run)" in client.kubectl("apply", "--dry-run=server", "-f-", stdin=written).out


def test_a_replicated_job_cannot_be_changed(client: Served) -> None:
    namespace = client.namespace()
    client.kubectl("apply", "-f-", stdin=manifest(namespace))
    refused = client.kubectl("apply", "-f-", stdin=manifest(namespace, replicas=3))
    assert refused.code == 1
    assert 'The JobSet "train" is invalid: spec.replicatedJobs' in refused.error
    assert "field is immutable" in refused.error


def test_tables_look_as_on_a_real_cluster(client: Served) -> None:
    namespace = client.namespace()
    client.kubectl("apply", "-f-", stdin=[manifest(namespace), core("Pod", pod(), namespace)])
    jobsets = rows(client.kubectl("get", "jobsets", "-n", namespace).out)
    assert jobsets[0] == ["NAME", "TERMINALSTATE", "RESTARTS", "COMPLETED", "SUSPENDED", "AGE"]
    assert jobsets[1][0] == "train"
    wide = rows(client.kubectl("get", "pods", "-n", namespace, "-o", "wide").out)
    assert wide[0][:7] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE"]
    assert wide[1][:4] == ["one", "0/1", "Pending", "0"]
    assert client.kubectl("get", "pods", "-n", namespace, "-o", "name").out == "pod/one\n"
    assert "No resources found" in client.kubectl("get", "events", "-n", namespace).error


def test_an_object_is_shown_as_yaml(client: Served) -> None:
    namespace = client.namespace()
    client.kubectl("apply", "-f-", stdin=manifest(namespace))
    shown = client.kubectl("get", "jobset", "train", "-n", namespace, "-o", "yaml").out
    assert "kind: JobSet" in shown
    assert "successPolicy:\n    operator: All" in shown


def test_describe_shows_the_events_of_this_very_object(client: Served) -> None:
    namespace = client.namespace()
    client.kubectl("apply", "-f-", stdin=manifest(namespace))
    uid = client.kubectl("get", "jobset", "train", "-n", namespace, "-o", "jsonpath={.metadata.uid}").out
    for name, about in (("mine", uid), ("other", "of-an-earlier-one")):
        event = {
            "metadata": {"name": name},
            "involvedObject": {"kind": "JobSet", "name": "train", "namespace": namespace, "uid": about},
            "type": "Normal",
            "reason": "SliceReady",
            "message": f"said of {name}",
        }
        assert client.kubectl("create", "-f-", stdin=core("Event", event, namespace)).code == 0
    shown = client.kubectl("describe", "jobset", "train", "-n", namespace).out
    assert "said of mine" in shown
    assert "said of other" not in shown


def test_the_events_of_one_object_are_listed(client: Served) -> None:
    namespace = client.namespace()
    for kind, version, name in (("JobSet", "jobset.x-k8s.io/v1alpha2", "train"), ("Pod", "v1", "other")):
        event = {
            "metadata": {"name": name},
            "involvedObject": {"kind": kind, "apiVersion": version, "name": name, "namespace": namespace},
            "type": "Normal",
            "reason": "SliceReady",
            "message": f"said of {name}",
        }
        client.kubectl("create", "-f-", stdin=core("Event", event, namespace))
    assert len(rows(client.kubectl("events", "-n", namespace, "--no-headers").out)) == 2
    shown = client.kubectl("events", "-n", namespace, "--for=pod/other").out
    assert "said of other" in shown
    assert "said of train" not in shown


def test_objects_are_chosen_by_labels_and_fields(client: Served) -> None:
    namespace = client.namespace()
    for name, app in (("one", "a"), ("two", "b")):
        client.kubectl("create", "-f-", stdin=core("Pod", pod(name, labels={"app": app}), namespace))
    chosen = ("get", "pods", "-n", namespace, "-o", "name")
    assert client.kubectl(*chosen, "-l", "app in (a)").out == "pod/one\n"
    assert client.kubectl(*chosen, "-l", "app!=a").out == "pod/two\n"
    assert client.kubectl(*chosen, "--field-selector=metadata.name=two,status.phase=Pending").out == "pod/two\n"
    path = "-o=jsonpath={.items[*].metadata.labels.app}"
    assert client.kubectl("get", "pods", "-n", namespace, path).out == "a b"


def test_labels_and_annotations_come_and_go(client: Served) -> None:
    namespace = client.namespace()
    client.kubectl("create", "-f-", stdin=manifest(namespace))
    of_train = ("jobset", "train", "-n", namespace)
    assert client.kubectl("label", *of_train, "team=a").out.endswith("train labeled\n")
    assert "--overwrite" in client.kubectl("label", *of_train, "team=b").error
    assert client.kubectl("annotate", *of_train, "note=x", "--overwrite").code == 0
    client.kubectl("label", *of_train, "team-")
    metadata = client.json("get", *of_train)["metadata"]
    assert ("labels" in metadata, metadata["annotations"]["note"]) == (False, "x")


def test_pods_and_nodes_can_be_described(client: Served) -> None:
    namespace = client.namespace()
    host = f"host-{namespace}"
    client.kubectl("apply", "-f-", stdin=core("Pod", pod(node=host), namespace))
    client.kubectl("create", "-f-", stdin={"apiVersion": "v1", "kind": "Node"} | node(host))
    assert f"{host}/" in client.kubectl("describe", "pod", "one", "-n", namespace).out
    shown = client.kubectl("describe", "node", host)
    assert (shown.code, "Non-terminated Pods:          (1 in total)" in shown.out) == (0, True)


def test_a_node_is_cordoned_tainted_and_labelled(client: Served) -> None:
    host = f"host-{client.namespace()}"
    client.kubectl("create", "-f-", stdin={"apiVersion": "v1", "kind": "Node"} | node(host))
    assert client.kubectl("cordon", host).out == f"node/{host} cordoned\n"
    assert client.kubectl("taint", "node", host, "a=b:NoSchedule").out == f"node/{host} tainted\n"
    assert client.kubectl("label", "node", host, "x=y").out == f"node/{host} labeled\n"
    shown = client.json("get", "node", host)
    assert shown["spec"]["unschedulable"] is True
    assert [taint["key"] for taint in shown["spec"]["taints"]] == ["a"]
    assert shown["metadata"]["labels"]["x"] == "y"
    assert client.kubectl("uncordon", host).out == f"node/{host} uncordoned\n"
    assert client.kubectl("taint", "node", host, "a-").out == f"node/{host} untainted\n"
    assert "taints" not in client.json("get", "node", host)["spec"]


def test_a_deletion_is_waited_for(client: Served) -> None:
    namespace = client.namespace()
    client.kubectl("apply", "-f-", stdin=manifest(namespace))
    gone = client.kubectl("delete", "jobset", "train", "-n", namespace, "--wait")
    assert (gone.code, '"train" deleted' in gone.out) == (0, True)
    assert "NotFound" in client.kubectl("get", "jobset", "train", "-n", namespace).error


def test_a_namespace_goes_with_all_that_is_in_it(client: Served) -> None:
    namespace = client.namespace()
    client.kubectl("apply", "-f-", stdin=[manifest(namespace), core("Pod", pod(), namespace)])
    assert client.kubectl("delete", "namespace", namespace).code == 0
    assert "NotFound" in client.kubectl("get", "namespace", namespace).error


@contextmanager
def running(client: Served, *arguments: str) -> Iterator[IO[str]]:
    """Run a kubectl that keeps running; yield its output."""
    with subprocess.Popen(client.command(*arguments), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout
        finally:
            process.terminate()


def test_kubectl_sees_changes_as_they_come(client: Served) -> None:
    namespace = client.namespace()
    client.kubectl("apply", "-f-", stdin=core("Pod", pod(), namespace))
    with running(client, "get", "pods", "-n", namespace, "--watch-only=false", "-w") as lines:
        assert lines.readline().split()[0] == "NAME"
        assert lines.readline().split()[:3] == ["one", "0/1", "Pending"]
        client.kubectl(
            "patch", "pod", "one", "-n", namespace, "--subresource=status", "-p", '{"status":{"phase":"Running"}}'
        )
        assert lines.readline().split()[:3] == ["one", "0/1", "Running"]


def test_kubectl_watches_one_object(client: Served) -> None:
    namespace = client.namespace()
    for name in ("one", "two"):
        client.kubectl("create", "-f-", stdin=core("Pod", pod(name), namespace))
    with running(client, "get", "pod", "two", "-n", namespace, "-w", "--no-headers") as lines:
        assert lines.readline().split()[0] == "two"
        client.kubectl("label", "pod", "one", "-n", namespace, "a=b")
        client.kubectl("label", "pod", "two", "-n", namespace, "a=b")
        assert lines.readline().split()[0] == "two"


def test_kubectl_waits_for_a_condition(client: Served) -> None:
    namespace = client.namespace()
    client.kubectl("apply", "-f-", stdin=manifest(namespace))
    waiting = ("wait", "jobset/train", "-n", namespace, "--for=condition=Completed", "--timeout=10s")
    with running(client, *waiting) as lines:
        condition = {
            "type": "Completed",
            "status": "True",
            "reason": "AllJobsCompleted",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        patch = {"status": {"conditions": [condition]}}
        flags = ("-n", namespace, "--subresource=status", "--type=merge", "--patch-file=/dev/stdin")
        assert client.kubectl("patch", "jobset", "train", *flags, stdin=patch).code == 0
        assert "condition met" in lines.readline()


def broken(namespace: str, **replicated: Any) -> dict[str, Any]:
    written = manifest(namespace)
    written["spec"]["replicatedJobs"][0] |= replicated
    return written


def test_a_typo_in_a_field_is_refused(client: Served) -> None:
    refused = client.kubectl("apply", "-f-", stdin=broken(client.namespace(), replicaz=2))
    assert refused.code == 1
    assert 'strict decoding error: unknown field "spec.replicatedJobs[0].replicaz"' in refused.error


def test_a_typo_is_warned_of_when_that_is_wished(client: Served) -> None:
    warned = client.kubectl("apply", "--validate=warn", "-f-", stdin=broken(client.namespace(), replicaz=2))
    assert warned.code == 0
    assert 'Warning: unknown field "spec.replicatedJobs[0].replicaz"' in warned.error


def test_a_wrong_type_is_refused(client: Served) -> None:
    refused = client.kubectl("apply", "-f-", stdin=broken(client.namespace(), replicas="two"))
    assert refused.code == 1
    assert "spec.replicatedJobs[0].replicas in body must be of type integer" in refused.error


def test_an_unknown_resource_is_not_there(client: Served) -> None:
    assert 'the server doesn\'t have a resource type "statefulsets"' in client.kubectl("get", "statefulsets").error


def test_a_jobset_comes_to_life(living: Served) -> None:
    namespace = living.namespace()
    living.kubectl("apply", "-f-", stdin=manifest(namespace))
    pending = ("wait", "pod", "-n", namespace, "-l", "jobset.sigs.k8s.io/jobset-name=train")
    assert living.kubectl(*pending, "--for=create", "--timeout=10s").code == 0
    shown = rows(living.kubectl("get", "pods", "-n", namespace, "--no-headers").out)
    assert sorted(row[0].rsplit("-", 1)[0] for row in shown) == ["train-slice-0-0", "train-slice-1-0"]
    assert living.kubectl("delete", "jobset", "train", "-n", namespace).code == 0
