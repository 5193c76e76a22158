"""What the API server of a self-managed cluster says: whether slices' hosts could join it, and be used.

GKE brings all of this. The build does not reach these clusters: `python -m infra.preflight inside FILE` does, where
kubectl reaches them.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping

import yaml

from infra.preflight.answers import Answer, Body, Denied, Found, Missing, Unreachable, unknown
from infra.preflight.findings import Finding, error, note, unread, warning
from tpu_slices.domain.model.clusters import ClusterSettings, ComputeSettings, Join
from tpu_slices.domain.planning.joining import TPU_TAINT, endpoint

NAMESPACE = "/api/v1/namespaces/tpu-slice-provisioner"
NODES = "/api/v1/nodes"
DAEMON_SETS = "/apis/apps/v1/daemonsets"
CLUSTER_INFO = "/api/v1/namespaces/kube-public/configmaps/cluster-info"
_POLICIES = "/apis/admissionregistration.k8s.io/v1"
JOB_ENVIRONMENT = (
    f"{_POLICIES}/mutatingadmissionpolicies/tpu-slice-provisioner-job-environment",
    f"{_POLICIES}/mutatingadmissionpolicybindings/tpu-slice-provisioner-job-environment",
)
OLDEST, WITH_JOB_ENVIRONMENT = 30, 36
"""Minor versions: from which on what restricts the relay is served, and what sets the environment of Jobs."""
_SKEW = 3
"""How many minor versions a kubelet may be older (kubernetes.io, version skew policy); it may not be newer."""
_APPLY_ENVIRONMENT = "kubectl apply --server-side --filename infra/kubernetes/job-environment.yaml"
_THEMSELVES = f"their pods must set TPU_WORKER_ID and TPU_WORKER_HOSTNAMES, and tolerate {TPU_TAINT.key}, themselves."
_ELSEWHERE = "Run this where `kubectl get --raw /version` answers for the cluster (--context names another one)."
_CNI = "/etc/cni/net.d"
_KEEPS_PODS_OFF = {"NoSchedule", "NoExecute"}


def not_asked(file: str) -> Finding:
    """Return that what is in the cluster was not asked, and how to ask it."""
    return note(
        "What is in the cluster was not asked: a build reaches no API server of a self-managed cluster. Where kubectl "
        "reaches it, run:",
        f"python -m infra.preflight inside {file}",
    )


def reachable(answer: Answer) -> Iterator[Finding]:
    """Yield whether the API server told its version."""
    if isinstance(answer, Denied | Unreachable):
        yield error(f"The API server does not answer: {unknown(answer)}. {_ELSEWHERE}")
    elif isinstance(answer, Missing):
        yield error(f"What answers is no API server. {_ELSEWHERE}")


def minor_of(version: Body) -> int:
    """Return the minor version of an API server; 0: it is not known."""
    found = re.match(r"\d+", str(version.get("minor", "")))
    return int(found[0]) if found else 0


def version_findings(compute: ComputeSettings, minor: int) -> Iterator[Finding]:
    """Yield whether the API server is recent enough, and fits the kubelets that the settings name."""
    if minor < OLDEST:
        yield error(
            f"It is Kubernetes 1.{minor}, and the policies that restrict the relay are served from 1.{OLDEST} on: "
            "upgrade it.",
            "kubeadm upgrade plan",
        )
    kubelets = int((compute.kubernetes or "").partition(".")[2] or minor)
    if not minor - _SKEW <= kubelets <= minor:
        yield error(
            f"compute.kubernetes is {compute.kubernetes}, and to an API server of 1.{minor} kubelets of "
            f"1.{minor - _SKEW} to 1.{minor} can be joined.",
            f'compute: {{kubernetes: "1.{minor}"}}',
        )


def relay_findings(namespace: Answer, nodes: Answer) -> Iterator[Finding]:
    """Yield whether the relay's namespace is there, and a node for it."""
    yield from unread("whether the relay's namespace exists", namespace)
    if isinstance(namespace, Missing):
        yield error(
            "The relay's namespace is missing, and with it what Google knows the relay by (docs/self-managed.md).",
            "kubectl create namespace tpu-slice-provisioner",
        )
    yield from unread("whether there is a node for the relay", nodes)
    if isinstance(nodes, Found) and not any(map(_takes_the_relay, nodes.body.get("items", ()))):
        yield error(
            "No node takes the relay: it needs one of Linux and amd64, ready, without taints and without TPU. On a "
            "control plane alone, take its taint away.",
            "kubectl taint nodes NODE node-role.kubernetes.io/control-plane:NoSchedule-",
        )


def _takes_the_relay(node: Body) -> bool:
    labels = node["metadata"].get("labels", {})
    ready = {each["type"]: each["status"] for each in node.get("status", {}).get("conditions", ())}.get("Ready")
    taints = [each for each in node.get("spec", {}).get("taints", ()) if each.get("effect") in _KEEPS_PODS_OFF]
    of_ours = (labels.get("kubernetes.io/os"), labels.get("kubernetes.io/arch")) == ("linux", "amd64")
    has_tpu = "google.com/tpu" in node.get("status", {}).get("capacity", {})
    return of_ours and ready == "True" and not taints and not has_tpu


def daemon_set_findings(cluster: str, answer: Answer) -> Iterator[Finding]:
    """Yield whether hosts get the device plugin and a network: DaemonSets that their taint does not keep off."""
    yield from unread("whether hosts get the device plugin and a network", answer)
    if not isinstance(answer, Found):
        return
    items = answer.body.get("items", ())
    plugins = [each for each in items if _is_device_plugin(each)]
    networks = [each for each in items if _is_network(each)]
    if not plugins:
        yield error(
            "There is no TPU device plugin: no host offers google.com/tpu, and no slice becomes ready. Its overlay, of "
            "which infra/kubernetes/device-plugin/overlays/example is one, says which images are meant.",
            f"kubectl apply --server-side --kustomize infra/kubernetes/device-plugin/overlays/{cluster}",
        )
    if not networks:
        yield warning(f"No DaemonSet mounts {_CNI}: unless the image of the hosts brings a CNI, they stay NotReady.")
    for each in (*plugins, *networks):
        if not _tolerates(_pod(each).get("tolerations", ())):
            yield _kept_off(each)


def _kept_off(daemon_set: Body) -> Finding:
    metadata = daemon_set["metadata"]
    tolerations = [*_pod(daemon_set).get("tolerations", ()), {"key": TPU_TAINT.key, "operator": "Exists"}]
    patch = json.dumps([{"op": "add", "path": "/spec/template/spec/tolerations", "value": tolerations}])
    return error(
        f"The DaemonSet {metadata['namespace']}/{metadata['name']} does not tolerate the taint {TPU_TAINT.key} of "
        "hosts: they stay without it, and no slice becomes ready.",
        f"kubectl patch daemonset {metadata['name']} --namespace {metadata['namespace']} --type json --patch '{patch}'",
    )


def _pod(daemon_set: Body) -> Body:
    pod: Body = daemon_set["spec"]["template"]["spec"]
    return pod


def _is_device_plugin(daemon_set: Body) -> bool:
    images = (each.get("image", "") for each in _pod(daemon_set).get("containers", ()))
    return any("tpu-device-plugin" in each for each in (daemon_set["metadata"]["name"], *images))


def _is_network(daemon_set: Body) -> bool:
    """Return whether it is one of a CNI, which puts its configuration there, or kube-proxy."""
    mounted = (each.get("hostPath", {}).get("path", "") for each in _pod(daemon_set).get("volumes", ()))
    return daemon_set["metadata"]["name"] == "kube-proxy" or any(each.rstrip("/") == _CNI for each in mounted)


def _tolerates(tolerations: Iterable[Mapping[str, str]]) -> bool:
    return any(
        each.get("key", "") in {"", TPU_TAINT.key}
        and each.get("effect", "") in {"", "NoSchedule"}
        and (each.get("operator") == "Exists" or each.get("value") == TPU_TAINT.value)
        for each in tolerations
    )


def environment_findings(minor: int, policy: Iterable[Answer]) -> Iterator[Finding]:
    """Yield whether Jobs of several hosts get their environment; `policy` and its binding, where they are served."""
    if minor < WITH_JOB_ENVIRONMENT:
        yield warning(
            f"Kubernetes 1.{minor} cannot set the environment of Jobs with several hosts (1.{WITH_JOB_ENVIRONMENT} "
            f"can): {_THEMSELVES}"
        )
        return
    answers = list(policy)
    for each in answers:
        yield from unread("whether Jobs of several hosts get their environment", each)
    if any(isinstance(each, Missing) for each in answers):
        yield warning(f"Jobs of several hosts get no environment: {_THEMSELVES}", _APPLY_ENVIRONMENT)


def joining_findings(settings: ClusterSettings, info: Answer) -> Iterator[Finding]:
    """Yield whether hosts can find the control plane by kubeadm; `info` is cluster-info, as anybody may read it."""
    compute = settings.pools.compute
    if compute is None or compute.join is not Join.KUBEADM or compute.control_plane is None:
        return
    if not isinstance(info, Found):
        why = "is missing" if isinstance(info, Missing) else f"cannot be read without credentials: {unknown(info)}"
        yield error(
            f"kubeadm's ConfigMap kube-public/cluster-info {why}; hosts that join begin with it.",
            "kubeadm init phase bootstrap-token",
        )
        return
    server = _server(info.body)
    if server is None:
        yield error(
            "kubeadm's ConfigMap kube-public/cluster-info names no server.", "kubeadm init phase bootstrap-token"
        )
    elif server != endpoint(compute.control_plane):
        yield error(
            f"Hosts that join go to {server}, by kube-public/cluster-info, and compute.control_plane is "
            f"{compute.control_plane}.",
            f"compute: {{control_plane: {server}}}",
        )


def _server(cluster_info: Body) -> str | None:
    """Return HOST:PORT of the API server in a ConfigMap cluster-info, or None."""
    try:
        kubeconfig = yaml.safe_load(cluster_info["data"]["kubeconfig"])
        url = str(kubeconfig["clusters"][0]["cluster"]["server"])
    except (KeyError, IndexError, TypeError, yaml.YAMLError):
        return None
    return endpoint(url.removeprefix("https://").rstrip("/"))
