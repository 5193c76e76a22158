from infra.local.cluster.controllers.fit import Refusal
from infra.local.cluster.controllers.scheduler import explanation
from tests.local.controllers.cluster import Cluster, condition, job_spec, node, pod_spec

ALONE = {"metadata": {"name": "alone", "namespace": "default"}}


UNSELECTED = "node(s) didn't match Pod's node affinity/selector"
NO_CHIPS = "Insufficient google.com/tpu"


def test_reasons_are_counted_in_the_schedulers_words() -> None:
    refusals = [Refusal((UNSELECTED,)), Refusal((NO_CHIPS, "Insufficient cpu")), Refusal((UNSELECTED,))]
    assert explanation(refusals) == (f"0/3 nodes are available: 1 Insufficient cpu, 1 {NO_CHIPS}, 2 {UNSELECTED}.")


def test_a_gated_pod_waits_for_its_gates() -> None:
    cluster = Cluster()
    cluster.add_pool("pool", hosts=1)
    gated = pod_spec(schedulingGates=[{"name": "kueue.x-k8s.io/topology"}])
    cluster.apply("pods", ALONE | {"spec": gated})
    assert condition(cluster.objects.get("pods", "default", "alone"), "PodScheduled")["reason"] == "SchedulingGated"
    assert cluster.reasons("pods", "alone") == set()

    pod = cluster.objects.get("pods", "default", "alone")
    del pod["spec"]["schedulingGates"]
    cluster.objects.update("pods", pod)
    cluster.settle()
    bound = cluster.objects.get("pods", "default", "alone")
    assert bound["spec"]["nodeName"] == "pool-0"
    assert condition(bound, "PodScheduled")["status"] == "True"


def test_a_constraint_that_is_not_covered_is_no_plain_unschedulable() -> None:
    cluster = Cluster()
    cluster.add_pool("pool", hosts=1)
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    cluster.apply("pods", ALONE | {"spec": pod_spec(volumes=[volume])})

    scheduled = condition(cluster.objects.get("pods", "default", "alone"), "PodScheduled")
    assert scheduled["reason"] == "SchedulerError"
    assert scheduled["message"] == "not implemented by the local scheduler: persistentVolumeClaims"


def test_a_changed_explanation_waits_for_the_back_off_but_a_node_that_fits_does_not() -> None:
    cluster = Cluster()
    cluster.apply("pods", ALONE | {"spec": pod_spec()})

    def message() -> str:
        pod = cluster.objects.get("pods", "default", "alone")
        said: str = condition(pod, "PodScheduled").get("message", "")
        return said

    cluster.apply("nodes", node("busy", unschedulable=True))
    assert message() == "no nodes available to schedule pods"
    cluster.pass_time(1)
    assert message().startswith("0/1 nodes are available: 1 node(s) were unschedulable.")
    cluster.apply("nodes", node("free"))
    assert cluster.objects.get("pods", "default", "alone")["spec"]["nodeName"] == "free"


def test_a_node_that_is_not_ready_takes_nobody_until_it_is() -> None:
    cluster = Cluster()
    cluster.apply("nodes", node("host", ready=False))
    cluster.apply("pods", ALONE | {"spec": pod_spec()})
    pod = cluster.objects.get("pods", "default", "alone")
    assert "untolerated taint {node.kubernetes.io/not-ready: }" in condition(pod, "PodScheduled")["message"]

    cluster.set_ready("host", ready=True)
    assert cluster.objects.get("pods", "default", "alone")["spec"]["nodeName"] == "host"


def test_the_more_important_pod_takes_the_last_host() -> None:
    cluster = Cluster()
    for name, priority in (("a", ""), ("b", "system-node-critical")):
        spec = pod_spec() | ({"priorityClassName": priority} if priority else {})
        cluster.apply("pods", {"metadata": {"name": name, "namespace": "default"}, "spec": spec})
    cluster.add_pool("pool", hosts=1)

    assert "nodeName" not in cluster.objects.get("pods", "default", "a")["spec"]
    assert cluster.objects.get("pods", "default", "b")["spec"]["nodeName"] == "pool-0"


def test_pods_of_one_round_do_not_take_the_same_chips() -> None:
    cluster = Cluster()
    metadata = {"name": "plain", "namespace": "default"}
    cluster.apply("jobs", {"metadata": metadata, "spec": job_spec(hosts=3)})
    cluster.add_pool("pool", hosts=2)

    nodes = [pod["spec"].get("nodeName") for pod in cluster.pods()]
    assert nodes == ["pool-0", "pool-1", None]
