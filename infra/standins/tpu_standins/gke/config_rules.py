"""Refusals of CreateNodePool for disks, identity, capacity, networks and management, in table order."""

import re

from google.cloud.container_v1 import ReservationAffinity, SecondaryBootDisk

from tpu_standins.cloud.rules import OURS
from tpu_standins.gke.codes import Code
from tpu_standins.gke.rules import Ask, Rule

_EMAIL = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?@([a-z0-9]([-a-z0-9]*[a-z0-9])?\.)+gserviceaccount\.com")
_RESERVATION = re.compile(
    r"(projects/[^/]+/reservations/)?[a-z]([-a-z0-9]{0,61}[a-z0-9])?"
    r"(/reservationBlocks/[^/]+(/reservationSubBlocks/[^/]+)?)?"
)
_RESERVATION_KEY = "compute.googleapis.com/reservation-name"
_KMS_KEY = re.compile(r"projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+")
_DISK_IMAGE = re.compile(r"projects/[^/]+/global/images/[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_DRANET = ("ct6e-", "tpu7x-")
_Consume = ReservationAffinity.Type


def _release_channel(ask: Ask) -> str | None:
    """Return the refusal, if any. Absent management gets the channel's defaults; one that is set is taken as it is."""
    channel = ask.cluster.release_channel
    if channel is None or "management" not in ask.spec:
        return None
    management, flex_start = ask.spec.management, ask.spec.config.flex_start
    wanted = {"upgrade": management.auto_upgrade, "repair": management.auto_repair or flex_start}
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
    disk = config.disk_type or config.boot_disk.disk_type or ask.machine.disks[0]
    if config.boot_disk_kms_key and disk == "hyperdisk-balanced":
        return None
    return "Confidential storage requires a boot disk of type hyperdisk-balanced and a boot disk KMS key."


def _secondary_disk(ask: Ask) -> str | None:
    config = ask.spec.config
    for disk in config.secondary_boot_disks:
        if disk.mode != SecondaryBootDisk.Mode.CONTAINER_IMAGE_CACHE:
            return "Secondary boot disks require the mode CONTAINER_IMAGE_CACHE."
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
    wrong = [value for value in affinity.values if not _RESERVATION.fullmatch(value)]
    return f'Invalid reservation "{wrong[0]}".' if wrong else None


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
    if profile and (extra or profile != "auto" or not ask.machine.name.startswith(_DRANET)):
        return f'Accelerator network profile "{profile}" is not supported here.'
    return None


def _queued(ask: Ask) -> str | None:
    consumes = ask.spec.config.reservation_affinity.consume_reservation_type
    refused = ask.spec.queued_provisioning.enabled and consumes != _Consume.NO_RESERVATION
    return "Queued_provisioning requires reservation affinity to be set to none" if refused else None


def _queued_not_covered(ask: Ask) -> str | None:
    wanted = ask.spec.queued_provisioning.enabled
    return "Queued provisioning is not implemented by the local GKE." if wanted else None


CONFIG_RULES = (
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
        fact="[py-gke SecondaryBootDisk, peer README] a cache of container images, with image streaming only",
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
    Rule(
        name="networks",
        code=Code.INVALID_ARGUMENT,
        fact="[py-gke AdditionalNodeNetworkConfig; ctk, xpk] DRANET: auto, ct6e and tpu7x, no additional networks",
        words=OURS,
        check=_networks,
    ),
    Rule(
        name="queued-with-reservation",
        code=Code.INVALID_ARGUMENT,
        fact="[doc:concepts/dws]",
        words="tf#18341",
        check=_queued,
    ),
    Rule(
        name="queued-not-covered",
        code=Code.UNIMPLEMENTED,
        fact="a limit of the local GKE",
        words=OURS,
        check=_queued_not_covered,
    ),
)
