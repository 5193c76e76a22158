"""Refusals of CreateNodePool for labels, taints, tags and metadata of nodes and VMs, in table order."""

import re
from collections.abc import Iterable

from google.cloud.container_v1 import NodeTaint

from tpu_standins.cloud.names import MOST_LABELS, is_name, wrong_label
from tpu_standins.cloud.rules import OURS
from tpu_standins.gke.codes import Code
from tpu_standins.gke.rules import Ask, Rule

_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_WORD = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_KUBERNETES = ("kubernetes.io", "k8s.io")
_KUBELET_MAY_SET = ("kubelet.kubernetes.io", "node.kubernetes.io")
_GKE = "cloud.google.com/gke-"
_FROM_USERS = frozenset(
    f"{_GKE}{name}" for name in ("tpu-ici-resiliency", "location-hint", "networking-dra-driver", "tpu-auto-restart")
)
"""Set by users on TPU node pools: the first two [peer internal/cloud/gke.go], then for DRANET [ctk, xpk], axlearn's."""
_MANAGED = frozenset(
    f"cloud.google.com/{name}"
    for name in (
        "compute-class",
        "placement-policy-name",
        "reservation-name",
        "reservation-project",
        "reservation-affinity",
        "reservation-blocks",
        "reservation-subblocks",
    )
)


def _is_key(key: str) -> bool:
    """Return whether Kubernetes accepts the key: an optional DNS prefix of up to 253 characters, a name of up to 63."""
    prefix, slash, name = key.rpartition("/")
    if slash and not (len(prefix) <= 253 and _PREFIX.fullmatch(prefix)):
        return False
    return len(name) <= 63 and _WORD.fullmatch(name) is not None


def _is_value(value: str) -> bool:
    return not value or (len(value) <= 63 and _WORD.fullmatch(value) is not None)


def _first(texts: Iterable[str]) -> str | None:
    return next(iter(texts), None)


def _label_syntax(ask: Ask) -> str | None:
    labels = ask.spec.config.labels.items()
    return _first(
        f'Invalid node label "{key}={value}": not a valid Kubernetes label.'
        for key, value in labels
        if not (_is_key(key) and _is_value(value))
    )


def _within(domain: str, domains: tuple[str, ...]) -> bool:
    return f".{domain}".endswith(tuple(f".{parent}" for parent in domains))


def _label_reserved(ask: Ask) -> str | None:
    """Refuse, as the kubelet does, label prefixes that equal or are subdomains of kubernetes.io or k8s.io."""
    namespaces = {key: key.rpartition("/")[0] for key in ask.spec.config.labels}
    return _first(
        f"Applying kubernetes label is not allowed: {key}."
        for key, namespace in namespaces.items()
        if _within(namespace, _KUBERNETES) and not _within(namespace, _KUBELET_MAY_SET)
    )


def _label_of_gke(ask: Ask) -> str | None:
    return _first(
        f'Node labels with key "{key}" are managed by GKE or Kubernetes and must not be manually specified.'
        for key in ask.spec.config.labels
        if key in _MANAGED or (key.startswith(_GKE) and key not in _FROM_USERS)
    )


def _labels_long(ask: Ask) -> str | None:
    total = sum(len(key) + len(value) for key, value in ask.spec.config.labels.items())
    return f"Node labels exceed the limit of 1024 characters: {total}." if total > 1_024 else None


def _resource_labels(ask: Ask) -> str | None:
    labels = ask.spec.config.resource_labels
    if len(labels) > MOST_LABELS:
        return f"Too many resource labels: {len(labels)}, at most {MOST_LABELS} are allowed."
    if (wrong := wrong_label(labels)) is None:
        return None
    return (
        f"Label '{wrong}' violates format constraints. It can only contain lowercase letters, numeric "
        "characters, underscores and dashes, and can be at most 63 characters long."
    )


def _taints(ask: Ask) -> str | None:
    return _first(
        f'Invalid node taint "{taint.key}={taint.value}": not a valid Kubernetes taint.'
        for taint in ask.spec.config.taints
        if not (_is_key(taint.key) and _is_value(taint.value)) or taint.effect == NodeTaint.Effect.EFFECT_UNSPECIFIED
    )


def _taint_twice(ask: Ask) -> str | None:
    taints = [(taint.key, taint.effect) for taint in ask.spec.config.taints]
    return "Node taints must be unique by key and effect." if len(set(taints)) < len(taints) else None


def _tags(ask: Ask) -> str | None:
    tags = ask.spec.config.tags
    if len(tags) > 64:
        return f"Too many network tags: {len(tags)}, at most 64 are allowed."
    wrong = [tag for tag in tags if not is_name(tag)]
    if not wrong:
        return None
    if len(wrong[0]) > 63:
        return f"Invalid tag {wrong[0]}: must be no more than 63 characters."
    return f"Invalid tag {wrong[0]}: must comply with RFC1035."


def _metadata(ask: Ask) -> str | None:
    sizes = [len(value) for value in ask.spec.config.metadata.values()]
    too_large = max(sizes, default=0) > 32_768 or sum(sizes) >= 524_288
    return "Metadata exceeds 32 KB for a value or 512 KB in total." if too_large else None


LABEL_RULES = (
    Rule(
        name="label-syntax",
        code=Code.INVALID_ARGUMENT,
        fact="[py-gke NodeConfig.labels]",
        words=OURS,
        check=_label_syntax,
    ),
    Rule(
        name="label-of-kubernetes",
        code=Code.INVALID_ARGUMENT,
        fact="[tf#6003] and the kubelet's --node-labels",
        words="tf#6003, bitpoke/stack#86",
        check=_label_reserved,
    ),
    Rule(
        name="label-set-by-gke",
        code=Code.INVALID_ARGUMENT,
        fact="[CA gke/labels/system_labels.go] GKE sets labels of these names; that it refuses all of gke- is ours",
        words="tf#19677",
        check=_label_of_gke,
    ),
    Rule(
        name="labels-too-long",
        code=Code.INVALID_ARGUMENT,
        fact="[py-gke NodeConfig.labels] 1,024 characters",
        words=OURS,
        check=_labels_long,
    ),
    Rule(
        name="resource-label-syntax",
        code=Code.INVALID_ARGUMENT,
        fact="[doc:compute/labeling-resources]",
        words="ours, after Compute Engine's in oap-project/cloudtik#14",
        check=_resource_labels,
    ),
    Rule(name="taint-syntax", code=Code.INVALID_ARGUMENT, fact="[py-gke NodeTaint]", words=OURS, check=_taints),
    Rule(
        name="taint-twice",
        code=Code.INVALID_ARGUMENT,
        fact="Kubernetes Node.spec.taints",
        words=OURS,
        check=_taint_twice,
    ),
    Rule(
        name="network-tag",
        code=Code.INVALID_ARGUMENT,
        fact="[py-gke NodeConfig.tags] RFC1035; [doc:vpc/add-remove-network-tags] 63 characters, 64 tags",
        words="terraform-google-modules/terraform-google-kubernetes-engine#1681 for the length, else ours",
        check=_tags,
    ),
    Rule(
        name="metadata-too-large",
        code=Code.INVALID_ARGUMENT,
        fact="[py-gke NodeConfig.metadata]",
        words=OURS,
        check=_metadata,
    ),
)
