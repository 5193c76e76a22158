"""Refusals of CreateNodePool for the node configuration, in table order."""

import re
from collections.abc import Iterable

from google.cloud.container_v1 import NodeTaint, ReservationAffinity

from infra.local.gke.codes import Code
from infra.local.gke.rules import OURS, Ask, Rule

_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_WORD = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_RESOURCE_KEY = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_RESOURCE_VALUE = re.compile(r"[a-z0-9_-]{0,63}")
_EMAIL = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?@([a-z0-9]([-a-z0-9]*[a-z0-9])?\.)+gserviceaccount\.com")
_RESERVATION = re.compile(
    r"(projects/[^/]+/reservations/)?[a-z]([-a-z0-9]{0,61}[a-z0-9])?"
    r"(/reservationBlocks/[^/]+(/reservationSubBlocks/[^/]+)?)?"
)
_RESERVATION_KEY = "compute.googleapis.com/reservation-name"
_KMS_KEY = re.compile(r"projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+")
_DISK_IMAGE = re.compile(r"projects/[^/]+/global/images/(family/)?[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_KUBERNETES = ("kubernetes.io", "k8s.io")
_KUBELET_MAY_SET = ("kubelet.kubernetes.io", "node.kubernetes.io")
_SET_BY_GKE = frozenset(
    f"cloud.google.com/{name}"
    for name in (
        "gke-nodepool",
        "gke-tpu-accelerator",
        "gke-tpu-topology",
        "gke-accelerator-count",
        "gke-spot",
        "gke-flex-start",
        "gke-provisioning",
        "gke-max-run-duration-seconds",
        "placement-policy-name",
        "reservation-name",
        "reservation-project",
        "reservation-affinity",
        "reservation-blocks",
        "reservation-subblocks",
    )
)
_Consume = ReservationAffinity.Type


def _is_key(key: str) -> bool:
    """Kubernetes: an optional DNS prefix of at most 253 characters, a name of at most 63."""
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
    """Refuse as the kubelet does: a namespace that is, or is below, kubernetes.io or k8s.io."""
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
        if key in _SET_BY_GKE
    )


def _labels_long(ask: Ask) -> str | None:
    total = sum(len(key) + len(value) for key, value in ask.spec.config.labels.items())
    return f"Node labels exceed the limit of 1024 characters: {total}." if total > 1_024 else None


def _resource_labels(ask: Ask) -> str | None:
    labels = ask.spec.config.resource_labels
    if len(labels) > 64:
        return f"Too many resource labels: {len(labels)}, at most 64 are allowed."
    return _first(
        f"Label '{key}={value}' violates format constraints. It can only contain lowercase letters, numeric "
        "characters, underscores and dashes, and can be at most 63 characters long."
        for key, value in labels.items()
        if not (_RESOURCE_KEY.fullmatch(key) and _RESOURCE_VALUE.fullmatch(value))
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


def _metadata(ask: Ask) -> str | None:
    sizes = [len(value) for value in ask.spec.config.metadata.values()]
    too_large = max(sizes, default=0) > 32_768 or sum(sizes) >= 524_288
    return "Metadata exceeds 32 KB for a value or 512 KB in total." if too_large else None


def _release_channel(ask: Ask) -> str | None:
    """Absent management takes the channel's defaults; a message that is there means what it says."""
    channel = ask.cluster.release_channel
    if channel is None or "management" not in ask.spec:
        return None
    wanted = {"upgrade": ask.spec.management.auto_upgrade, "repair": ask.spec.management.auto_repair}
    off = [f"auto_{name}" for name, on in wanted.items() if not on]
    if not off:
        return None
    return f"{' and '.join(off).capitalize()} cannot be false when release_channel {channel} is set."


def _disk_type(ask: Ask) -> str | None:
    config = ask.spec.config
    wanted = {config.disk_type, config.boot_disk.disk_type} - {""}
    wrong = sorted(wanted - set(ask.machine.disks))
    return f"[{wrong[0]}, {ask.machine.name}] features are not compatible for creating instance." if wrong else None


def _disk_size(ask: Ask) -> str | None:
    sizes = {ask.spec.config.disk_size_gb, ask.spec.config.boot_disk.size_gb} - {0}
    return "Disk size must be at least 10 GB." if sizes and min(sizes) < 10 else None


def _service_account(ask: Ask) -> str | None:
    account = ask.spec.config.service_account
    if account in {"", "default"} or _EMAIL.fullmatch(account):
        return None
    return f'Service account "{account}" does not exist.'


def _kms_key(ask: Ask) -> str | None:
    key = ask.spec.config.boot_disk_kms_key
    return f'Invalid Cloud KMS key "{key}".' if key and not _KMS_KEY.fullmatch(key) else None


def _confidential_storage(ask: Ask) -> str | None:
    config = ask.spec.config
    if not config.enable_confidential_storage:
        return None
    hyperdisk = (config.disk_type or config.boot_disk.disk_type or ask.machine.disks[0]).startswith("hyperdisk-")
    if config.boot_disk_kms_key and hyperdisk:
        return None
    return "Confidential storage requires a Hyperdisk boot disk and a boot disk KMS key."


def _secondary_disk(ask: Ask) -> str | None:
    config = ask.spec.config
    for disk in config.secondary_boot_disks:
        if not _DISK_IMAGE.fullmatch(disk.disk_image):
            return f'Invalid secondary boot disk image "{disk.disk_image}".'
    if config.secondary_boot_disks and not config.gcfs_config.enabled:
        return "Secondary boot disks require image streaming (gcfs_config) to be enabled."
    return None


def _spot_and_preemptible(ask: Ask) -> str | None:
    both = ask.spec.config.spot and ask.spec.config.preemptible
    return "Only one of spot and preemptible can be set." if both else None


def _spot_with_reservation(ask: Ask) -> str | None:
    config = ask.spec.config
    consumes = config.reservation_affinity.consume_reservation_type
    if not (config.spot or config.preemptible) or consumes in {_Consume.UNSPECIFIED, _Consume.NO_RESERVATION}:
        return None
    return "Spot and preemptible VMs cannot consume reservations; reservation affinity must be NO_RESERVATION."


def _reservation_key(ask: Ask) -> str | None:
    affinity = ask.spec.config.reservation_affinity
    if affinity.consume_reservation_type != _Consume.SPECIFIC_RESERVATION:
        stray = affinity.key or affinity.values
        return "Reservation key and values require SPECIFIC_RESERVATION." if stray else None
    if affinity.key != _RESERVATION_KEY or not affinity.values:
        return f'SPECIFIC_RESERVATION requires the key "{_RESERVATION_KEY}" and a value.'
    return _first(f'Invalid reservation "{value}".' for value in affinity.values if not _RESERVATION.fullmatch(value))


def _max_pods(ask: Ask) -> str | None:
    if "max_pods_constraint" not in ask.spec or 8 <= ask.spec.max_pods_constraint.max_pods_per_node <= 256:
        return None
    return f"Max pods per node must be between 8 and 256, got {ask.spec.max_pods_constraint.max_pods_per_node}."


def _networks(ask: Ask) -> str | None:
    network = ask.spec.network_config
    extra = network.additional_node_network_configs
    if any(not (one.network and one.subnetwork) for one in extra):
        return "Additional node networks require network and subnetwork."
    profile = network.accelerator_network_profile
    if profile and (extra or not ask.machine.name.startswith("ct6e-")):
        return f'Accelerator network profile "{profile}" is not supported here.'
    return None


def _queued(ask: Ask) -> str | None:
    consumes = ask.spec.config.reservation_affinity.consume_reservation_type
    refused = ask.spec.queued_provisioning.enabled and consumes != _Consume.NO_RESERVATION
    return "Queued_provisioning requires reservation affinity to be set to none" if refused else None


def _flex_start(ask: Ask) -> str | None:
    wanted = ask.spec.config.flex_start or ask.spec.queued_provisioning.enabled
    return "Flex-start and queued provisioning are not implemented by the local GKE." if wanted else None


CONFIG_RULES = (
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
        words="tf#6003",
        check=_label_reserved,
    ),
    Rule(
        name="label-set-by-gke",
        code=Code.INVALID_ARGUMENT,
        fact="[CA gke/labels/system_labels.go] which labels GKE sets",
        words="hashicorp/terraform-provider-google#19677",
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
        name="metadata-too-large",
        code=Code.INVALID_ARGUMENT,
        fact="[py-gke NodeConfig.metadata]",
        words=OURS,
        check=_metadata,
    ),
    Rule(
        name="auto-upgrade-in-a-release-channel",
        code=Code.INVALID_ARGUMENT,
        fact="[doc:release-channels]",
        words="terraform-google-modules/terraform-google-kubernetes-engine#682",
        check=_release_channel,
    ),
    Rule(
        name="disk-type-of-another-family",
        code=Code.INVALID_ARGUMENT,
        fact="[CA machine families]",
        words="ours, after Compute Engine's in DataBiosphere/dsub#301",
        check=_disk_type,
    ),
    Rule(
        name="disk-too-small",
        code=Code.INVALID_ARGUMENT,
        fact="[py-gke NodeConfig.disk_size_gb]",
        words=OURS,
        check=_disk_size,
    ),
    Rule(
        name="kms-key",
        code=Code.INVALID_ARGUMENT,
        fact="[py-gke NodeConfig.boot_disk_kms_key]",
        words=OURS,
        check=_kms_key,
    ),
    Rule(
        name="confidential-storage",
        code=Code.INVALID_ARGUMENT,
        fact="[py-gke NodeConfig.enable_confidential_storage] confidential mode of Hyperdisk, with a key",
        words=OURS,
        check=_confidential_storage,
    ),
    Rule(
        name="secondary-boot-disk",
        code=Code.INVALID_ARGUMENT,
        fact="[py-gke SecondaryBootDisk, peer README] with image streaming only",
        words=OURS,
        check=_secondary_disk,
    ),
    Rule(
        name="service-account-format",
        code=Code.INVALID_ARGUMENT,
        fact="[py-gke NodeConfig.service_account]",
        words="midl-dev/tezos-on-gke#45",
        check=_service_account,
    ),
    Rule(
        name="spot-and-preemptible",
        code=Code.INVALID_ARGUMENT,
        fact="[py-gke NodeConfig.spot]",
        words=OURS,
        check=_spot_and_preemptible,
    ),
    Rule(
        name="spot-with-reservation",
        code=Code.INVALID_ARGUMENT,
        fact="GoogleCloudPlatform/cluster-toolkit#5062",
        words=OURS,
        check=_spot_with_reservation,
    ),
    Rule(
        name="reservation-affinity",
        code=Code.INVALID_ARGUMENT,
        fact="[py-gke ReservationAffinity, ctk]",
        words=OURS,
        check=_reservation_key,
    ),
    Rule(name="max-pods", code=Code.INVALID_ARGUMENT, fact="[doc:quotas]", words=OURS, check=_max_pods),
    Rule(name="networks", code=Code.INVALID_ARGUMENT, fact="[ctk, xpk]", words=OURS, check=_networks),
    Rule(
        name="queued-with-reservation",
        code=Code.INVALID_ARGUMENT,
        fact="[doc:concepts/dws]",
        words="tf#18341",
        check=_queued,
    ),
    Rule(
        name="flex-start-not-covered",
        code=Code.UNIMPLEMENTED,
        fact="a limit of the local GKE",
        words=OURS,
        check=_flex_start,
    ),
)
