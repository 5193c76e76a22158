"""The local API server as people meet it: through kubectl."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import pytest

from tests.local.cluster.served import Served
from tests.local.cluster.world import EXCLUSIVE, POOL, jobset, node, pod

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket, pytest.mark.timeout(60)]


def manifest(namespace: str, name: str = "train", **spec: Any) -> dict[str, Any]:
    """A JobSet as people write it, with what the webhook would default where a second apply needs it."""
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


def test_a_jobset_is_applied_again_and_changed(served: Served) -> None:
    written = manifest(served.namespace())
    assert "jobset.jobset.x-k8s.io/train created" in served.kubectl("apply", "-f-", stdin=written).out
    assert "jobset.jobset.x-k8s.io/train unchanged" in served.kubectl("apply", "-f-", stdin=written).out
    written["metadata"]["labels"] = {"team": "a"}
    assert "jobset.jobset.x-k8s.io/train configured" in served.kubectl("apply", "-f-", stdin=written).out


def test_a_change_is_rehearsed_before_it_is_made(served: Served) -> None:
    written = manifest(served.namespace())
    served.kubectl("apply", "-f-", stdin=written)
    written["spec"]["suspend"] = True
    shown = served.kubectl("diff", "-f-", stdin=written)
    assert (shown.code, "+  suspend: true" in shown.out) == (1, True)
    assert "configured (server dry run)" in served.kubectl("apply", "--dry-run=server", "-f-", stdin=written).out


def test_a_replicated_job_cannot_be_changed(served: Served) -> None:
    namespace = served.namespace()
    served.kubectl("apply", "-f-", stdin=manifest(namespace))
    refused = served.kubectl("apply", "-f-", stdin=manifest(namespace, replicas=3))
    assert refused.code == 1
    assert 'The JobSet "train" is invalid: spec.replicatedJobs' in refused.error
    assert "field is immutable" in refused.error


def test_tables_look_as_on_a_real_cluster(served: Served) -> None:
    namespace = served.namespace()
    served.kubectl("apply", "-f-", stdin=[manifest(namespace), core("Pod", pod(), namespace)])
    jobsets = rows(served.kubectl("get", "jobsets", "-n", namespace).out)
    assert jobsets[0] == ["NAME", "TERMINALSTATE", "RESTARTS", "COMPLETED", "SUSPENDED", "AGE"]
    assert jobsets[1][0] == "train"
    wide = rows(served.kubectl("get", "pods", "-n", namespace, "-o", "wide").out)
    assert wide[0][:7] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE"]
    assert wide[1][:4] == ["one", "0/1", "Pending", "0"]
    assert served.kubectl("get", "pods", "-n", namespace, "-o", "name").out == "pod/one\n"
    assert "No resources found" in served.kubectl("get", "events", "-n", namespace).error


def test_an_object_is_shown_as_yaml(served: Served) -> None:
    namespace = served.namespace()
    served.kubectl("apply", "-f-", stdin=manifest(namespace))
    shown = served.kubectl("get", "jobset", "train", "-n", namespace, "-o", "yaml").out
    assert "kind: JobSet" in shown
    assert "successPolicy:\n    operator: All" in shown


def test_describe_shows_the_events_of_this_very_object(served: Served) -> None:
    namespace = served.namespace()
    served.kubectl("apply", "-f-", stdin=manifest(namespace))
    uid = served.kubectl("get", "jobset", "train", "-n", namespace, "-o", "jsonpath={.metadata.uid}").out
    for name, about in (("mine", uid), ("other", "of-an-earlier-one")):
        event = {
            "metadata": {"name": name},
            "involvedObject": {"kind": "JobSet", "name": "train", "namespace": namespace, "uid": about},
            "type": "Normal",
            "reason": "SliceReady",
            "message": f"said of {name}",
        }
        assert served.kubectl("create", "-f-", stdin=core("Event", event, namespace)).code == 0
    shown = served.kubectl("describe", "jobset", "train", "-n", namespace).out
    assert "said of mine" in shown
    assert "said of other" not in shown


def test_pods_and_nodes_can_be_described(served: Served) -> None:
    namespace = served.namespace()
    served.kubectl("apply", "-f-", stdin=core("Pod", pod(node="described"), namespace))
    served.kubectl("create", "-f-", stdin={"apiVersion": "v1", "kind": "Node"} | node("described"))
    assert "Node:         described/" in served.kubectl("describe", "pod", "one", "-n", namespace).out
    shown = served.kubectl("describe", "node", "described")
    assert (shown.code, "Non-terminated Pods:          (1 in total)" in shown.out) == (0, True)


def test_a_node_is_cordoned_tainted_and_labelled(served: Served) -> None:
    served.kubectl("create", "-f-", stdin={"apiVersion": "v1", "kind": "Node"} | node("worker"))
    assert served.kubectl("cordon", "worker").out == "node/worker cordoned\n"
    assert served.kubectl("taint", "node", "worker", "a=b:NoSchedule").out == "node/worker tainted\n"
    assert served.kubectl("label", "node", "worker", "x=y").out == "node/worker labeled\n"
    shown = served.kubectl("get", "node", "worker", "-o", "jsonpath={.spec}{.metadata.labels}").out
    assert '"unschedulable":true' in shown
    assert '"key":"a"' in shown
    assert '"x":"y"' in shown


def test_a_deletion_is_waited_for(served: Served) -> None:
    namespace = served.namespace()
    served.kubectl("apply", "-f-", stdin=manifest(namespace))
    gone = served.kubectl("delete", "jobset", "train", "-n", namespace, "--wait")
    assert (gone.code, '"train" deleted' in gone.out) == (0, True)
    assert "NotFound" in served.kubectl("get", "jobset", "train", "-n", namespace).error


def test_a_namespace_goes_with_all_that_is_in_it(served: Served) -> None:
    namespace = served.namespace()
    served.kubectl("apply", "-f-", stdin=[manifest(namespace), core("Pod", pod(), namespace)])
    assert served.kubectl("delete", "namespace", namespace).code == 0
    assert "NotFound" in served.kubectl("get", "namespace", namespace).error


@contextmanager
def running(served: Served, *arguments: str) -> Iterator[IO[str]]:
    """A kubectl that goes on, and its lines."""
    with subprocess.Popen(served.command(*arguments), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout
        finally:
            process.terminate()


def test_kubectl_sees_changes_as_they_come(served: Served) -> None:
    namespace = served.namespace()
    served.kubectl("apply", "-f-", stdin=core("Pod", pod(), namespace))
    with running(served, "get", "pods", "-n", namespace, "--watch-only=false", "-w") as lines:
        assert lines.readline().split()[0] == "NAME"
        assert lines.readline().split()[:3] == ["one", "0/1", "Pending"]
        served.kubectl(
            "patch", "pod", "one", "-n", namespace, "--subresource=status", "-p", '{"status":{"phase":"Running"}}'
        )
        assert lines.readline().split()[:3] == ["one", "0/1", "Running"]


def test_kubectl_waits_for_a_condition(served: Served) -> None:
    namespace = served.namespace()
    served.kubectl("apply", "-f-", stdin=manifest(namespace))
    waiting = ("wait", "jobset/train", "-n", namespace, "--for=condition=Completed", "--timeout=10s")
    with running(served, *waiting) as lines:
        condition = {
            "type": "Completed",
            "status": "True",
            "reason": "AllJobsCompleted",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        patch = {"status": {"conditions": [condition]}}
        flags = ("-n", namespace, "--subresource=status", "--type=merge", "--patch-file=/dev/stdin")
        assert served.kubectl("patch", "jobset", "train", *flags, stdin=patch).code == 0
        assert "condition met" in lines.readline()


def broken(namespace: str, **replicated: Any) -> dict[str, Any]:
    written = manifest(namespace)
    written["spec"]["replicatedJobs"][0] |= replicated
    return written


def test_a_typo_in_a_field_is_refused(served: Served) -> None:
    refused = served.kubectl("apply", "-f-", stdin=broken(served.namespace(), replicaz=2))
    assert refused.code == 1
    assert 'strict decoding error: unknown field "spec.replicatedJobs[0].replicaz"' in refused.error


def test_a_typo_is_warned_of_when_that_is_wished(served: Served) -> None:
    warned = served.kubectl("apply", "--validate=warn", "-f-", stdin=broken(served.namespace(), replicaz=2))
    assert warned.code == 0
    assert 'Warning: unknown field "spec.replicatedJobs[0].replicaz"' in warned.error


def test_a_wrong_type_is_refused(served: Served) -> None:
    refused = served.kubectl("apply", "-f-", stdin=broken(served.namespace(), replicas="two"))
    assert refused.code == 1
    assert "spec.replicatedJobs[0].replicas in body must be of type integer" in refused.error


def test_an_unknown_resource_is_not_there(served: Served) -> None:
    assert 'the server doesn\'t have a resource type "deployments"' in served.kubectl("get", "deployments").error


def test_server_side_apply_is_not_covered(served: Served) -> None:
    refused = served.kubectl("apply", "--server-side", "-f-", stdin=manifest(served.namespace()))
    assert refused.code == 1
    assert 'does not implement "application/apply-patch+yaml"' in refused.error


def test_a_jobset_comes_to_life(living: Served) -> None:
    namespace = living.namespace()
    living.kubectl("apply", "-f-", stdin=manifest(namespace))
    pending = ("wait", "pod", "-n", namespace, "-l", "jobset.sigs.k8s.io/jobset-name=train")
    assert living.kubectl(*pending, "--for=create", "--timeout=10s").code == 0
    shown = rows(living.kubectl("get", "pods", "-n", namespace, "--no-headers").out)
    assert sorted(row[0].rsplit("-", 1)[0] for row in shown) == ["train-slice-0-0", "train-slice-1-0"]
    assert living.kubectl("delete", "jobset", "train", "-n", namespace).code == 0
