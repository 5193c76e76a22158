"""The metadata of a slice's instances: what its hosts join the cluster with, and are labelled with. Pure.

The keys are those of Google's operator and its device plugin (gke-labs/tpu-operator, ai-on-gke/tpu-device-plugin); the
startup script reads `kubernetes-version`, `kubeadm-control-plane` and `kube-taints` beside them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence

from tpu_slices.domain.model.clusters import Join, PoolSettings
from tpu_slices.domain.model.joining import JoinToken, Kubeadm
from tpu_slices.domain.model.slices import PoolName, SliceSpec, Taint, WorkloadJob, claim_id, pool_name
from tpu_slices.domain.planning.host_labels import NODE_POOL, host_labels
from tpu_slices.domain.planning.pool_labels import labels_of_pool

KUBE_LABELS = "kube-labels"
KUBE_TAINTS = "kube-taints"
TOPOLOGY_ID = "accelerator_topology_id"
GUEST_ATTRIBUTES = "enable-guest-attributes"
KUBERNETES = "kubernetes-version"
CONTROL_PLANE = "kubeadm-control-plane"
TOKEN = "kubeadm-join-token"  # noqa: S105 - the key of one
CONTROL_PLANE_IP = "kubeadm-control-plane-ip"
CA_HASH = "kubeadm-ca-hash"

API_PORT = 6443
TPU_TAINT = Taint("google.com/tpu", "present")
"""GKE's taint of hosts with TPU: what requests no chips stays away from them. Google's operator sets none."""

_FROM_KUBELETS = frozenset(
    f"{domain}/{name}"
    for domain, names in {
        "kubernetes.io": ("hostname", "os", "arch"),
        "beta.kubernetes.io": ("os", "arch", "instance-type"),
        "topology.kubernetes.io": ("zone", "region"),
        "failure-domain.beta.kubernetes.io": ("zone", "region"),
    }.items()
    for name in names
)
_DOMAINS_OF_KUBELETS = ("kubelet.kubernetes.io", "node.kubernetes.io")
_DOMAINS_OF_KUBERNETES = ("kubernetes.io", "k8s.io")


def kubeadm_of(spec: SliceSpec, pools: PoolSettings) -> Kubeadm | None:
    """Return what a slice's hosts join with, as its TPUNodeGroup says, or the settings; None: not by our script."""
    compute, instance = pools.compute, spec.instance
    if compute is None or (instance is not None and instance.template is not None):
        return None
    if instance is not None:
        kubernetes, control_plane = instance.kubernetes or compute.kubernetes, instance.control_plane
    elif compute.join is Join.KUBEADM:
        kubernetes, control_plane = compute.kubernetes, compute.control_plane
    else:
        return None
    return Kubeadm(kubernetes, control_plane) if kubernetes and control_plane else None


def kubelet_may_set(key: str) -> bool:
    """Return whether a kubelet may set a label on its own node.

    Others of Kubernetes' own prefixes it refuses to start with, and the admission plugin NodeRestriction refuses them
    (k8s.io/kubelet pkg/apis/well_known_labels.go, plugin/pkg/admission/noderestriction).
    """
    domain = key.rpartition("/")[0]
    if not _within(domain, _DOMAINS_OF_KUBERNETES):
        return True
    return key in _FROM_KUBELETS or _within(domain, _DOMAINS_OF_KUBELETS)


def labels_of_host(
    job: WorkloadJob, attempt: int, spec: SliceSpec, pools: PoolSettings, pool: PoolName | None = None
) -> dict[str, str]:
    """Return the labels of a slice's host, sorted by key: those that GKE would set, and those of its pool.

    `pool`: its name, if it was not made under ours.
    """
    labels = {
        **{key: value for key, value in host_labels(spec, job, pools).items() if value},
        **labels_of_pool(job, attempt, spec),
        NODE_POOL: pool or pool_name(claim_id(job), attempt),
    }
    return dict(sorted(labels.items()))


def node_labels(job: WorkloadJob, attempt: int, spec: SliceSpec, pools: PoolSettings) -> dict[str, str]:
    """Return the labels that a slice's host registers with; those that a kubelet may not set are left to the relay."""
    labels = labels_of_host(job, attempt, spec, pools)
    return {key: value for key, value in labels.items() if kubelet_may_set(key)}


def host_metadata(job: WorkloadJob, attempt: int, spec: SliceSpec, pools: PoolSettings) -> dict[str, str]:
    """Return the metadata that each instance has, whatever its template: the device plugin ends without its labels."""
    metadata = {KUBE_LABELS: _pairs(node_labels(job, attempt, spec, pools))}
    return {**metadata, TOPOLOGY_ID: topology_id(job, attempt, spec)} if spec.hosts > 1 else metadata


def topology_id(job: WorkloadJob, attempt: int, spec: SliceSpec) -> str:
    """Return which hosts are wired together: by topology the same text on all hosts of a slice, and on no others."""
    name = pool_name(claim_id(job), attempt)
    return json.dumps({str(spec.topology): hashlib.sha256(name.encode()).hexdigest()[:32]})


def template_metadata(
    job: WorkloadJob, attempt: int, spec: SliceSpec, pools: PoolSettings, kubeadm: Kubeadm | None
) -> dict[str, str]:
    """Return the metadata of a slice's instance template, beside the startup script; `kubeadm` None: it has none."""
    metadata = {**host_metadata(job, attempt, spec, pools), GUEST_ATTRIBUTES: "TRUE"}
    if kubeadm is None:
        return metadata
    return {
        **metadata,
        KUBE_TAINTS: ",".join(f"{each.key}={each.value}:NoSchedule" for each in taints(spec)),
        KUBERNETES: kubeadm.kubernetes,
        CONTROL_PLANE: endpoint(kubeadm.control_plane),
    }


def taints(spec: SliceSpec) -> tuple[Taint, ...]:
    """Return the taints that a host registers with; those of a TPUNodeGroup have no other than its own."""
    return spec.taints if spec.instance is not None else (TPU_TAINT, *spec.taints)


def join_metadata(token: JoinToken | None, kubeadm: Kubeadm) -> dict[str, str | None]:
    """Return the metadata that each instance gets to join with; `token` None: what is taken out of it again."""
    if token is None:
        return dict.fromkeys((TOKEN, CONTROL_PLANE_IP, CA_HASH))
    host, _, _ = endpoint(kubeadm.control_plane).rpartition(":")
    return {TOKEN: token.token, CONTROL_PLANE_IP: host.strip("[]"), CA_HASH: ",".join(token.ca_hashes)}


def changed_items(present: Sequence[tuple[str, str]], wanted: Mapping[str, str | None]) -> list[tuple[str, str]] | None:
    """Return all metadata of an instance once it has what is wanted; None if it has that already.

    Others' items stay, in their order, and others' labels in `kube-labels`; a value of None: there is to be none.
    """
    known = dict(present)
    merged = {
        key: with_labels(known.get(key, ""), value) if key == KUBE_LABELS and value is not None else value
        for key, value in wanted.items()
    }
    items = {key: value for key, value in {**known, **merged}.items() if key and value is not None}
    return None if items == known else list(items.items())


def with_labels(present: str, labels: str) -> str:
    """Return `key=value,...` with other labels beside; a word alone is a label without a value."""
    return _pairs({**_labels(present), **_labels(labels)})


def _labels(text: str) -> dict[str, str]:
    pairs = (each.strip().partition("=") for each in text.split(","))
    return {key.strip(): value.strip() for key, _, value in pairs if key.strip()}


def _pairs(labels: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def endpoint(control_plane: str) -> str:
    """Return HOST:PORT of an API server, with kubeadm's port if none is given."""
    host, separator, port = control_plane.rpartition(":")
    has_port = separator and port.isdigit() and (":" not in host or host.endswith("]"))
    return control_plane if has_port else f"{control_plane}:{API_PORT}"


def _within(domain: str, domains: Iterable[str]) -> bool:
    return any(domain == each or domain.endswith(f".{each}") for each in domains)
