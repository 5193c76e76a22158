"""What Compute Engine refuses of an instance template. That it does so at once, not for its VMs, is our choice."""

import re
from http import HTTPStatus

from tpu_standins.cloud.names import MOST_LABELS, is_name, wrong_label
from tpu_standins.cloud.rules import OURS, Covered
from tpu_standins.compute.refusals.rules import (
    BAD_NAME,
    BUSY,
    EXISTS,
    IN_USE,
    LONG_DESCRIPTION,
    UNKNOWN,
    Ask,
    Rule,
    covers,
    invalid_value,
    limit,
    missing,
)
from tpu_standins.compute.refusals.scheduling import SCHEDULING_RULES
from tpu_standins.compute.state import machine_of

_AT = "resource.properties"
_COVERED: Covered = {
    "name": {},
    "description": {},
    "properties": {
        "description": {},
        "machine_type": {},
        "labels": {},
        "can_ip_forward": {},
        "metadata": {"items": {"key": {}, "value": {}}},
        "tags": {"items": {}},
        "service_accounts": {"email": {}, "scopes": {}},
        "network_interfaces": {"network": {}, "subnetwork": {}, "nic_type": {}},
        "reservation_affinity": {"consume_reservation_type": {}, "key": {}, "values": {}},
        "shielded_instance_config": {"enable_integrity_monitoring": {}, "enable_secure_boot": {}, "enable_vtpm": {}},
        "scheduling": {
            "automatic_restart": {},
            "instance_termination_action": {},
            "on_host_maintenance": {},
            "preemptible": {},
            "provisioning_model": {},
        },
        "disks": {
            "auto_delete": {},
            "boot": {},
            "type": {},
            "mode": {},
            "device_name": {},
            "disk_encryption_key": {"kms_key_name": {}},
            "initialize_params": {"source_image": {}, "disk_size_gb": {}, "disk_type": {}, "labels": {}},
        },
    },
}
_SUBNETWORK = re.compile(r"(https://[^/]+/compute/v1/)?(projects/[^/]+/)?regions/[^/]+/subnetworks/[^/]+")
_IMAGE = re.compile(r"(https://[^/]+/compute/v1/)?((projects/)?[^/]+/)?global/(images|images/family)/[^/]+")
_KEY = re.compile(r"[a-zA-Z0-9_-]{1,127}")
_VALUE_BYTES = 262_144
_METADATA_BYTES = 524_288
_SMALLEST_DISK = 10


def _no_machine(ask: Ask) -> str | None:
    return None if ask.body.properties.machine_type else missing(f"{_AT}.machineType")


def _machine_url(ask: Ask) -> str | None:
    return "Internal error. Please try again." if "/" in ask.body.properties.machine_type else None


def _machine_not_covered(ask: Ask) -> str | None:
    machine = ask.body.properties.machine_type
    return None if machine_of(machine) else f"Machine type {machine} is not implemented by the local Compute Engine."


def _no_boot_disk(ask: Ask) -> str | None:
    boot = [disk for disk in ask.body.properties.disks if disk.boot]
    return None if boot else invalid_value(f"{_AT}.disks", "", "Boot disk must be specified.")


def _bad_image(ask: Ask) -> str | None:
    for index, disk in enumerate(ask.body.properties.disks):
        image = disk.initialize_params.source_image
        if disk.boot and not _IMAGE.fullmatch(image):
            why = "The URL is malformed." if image else "A boot disk needs a source."
            return invalid_value(f"{_AT}.disks[{index}].initializeParams.sourceImage", image, why)
    return None


def _bad_disk(ask: Ask) -> str | None:
    for index, disk in enumerate(ask.body.properties.disks):
        at, given = f"{_AT}.disks[{index}].initializeParams", disk.initialize_params
        kind, machine = given.disk_type, machine_of(ask.body.properties.machine_type)
        if kind and machine and kind not in machine.disks:
            possible = ", ".join(machine.disks)
            return invalid_value(f"{at}.diskType", kind, f"{machine.name} can have {possible}, by name, not by URL.")
        if "disk_size_gb" in given and given.disk_size_gb < _SMALLEST_DISK:
            return invalid_value(f"{at}.diskSizeGb", given.disk_size_gb, "Must be at least 10.")
    return None


def _no_network(ask: Ask) -> str | None:
    return None if ask.body.properties.network_interfaces else "At least one network interface is required."


def _bad_subnetwork(ask: Ask) -> str | None:
    for index, interface in enumerate(ask.body.properties.network_interfaces):
        given = interface.subnetwork
        if given and not _SUBNETWORK.fullmatch(given):
            at = f"{_AT}.networkInterfaces[{index}].subnetwork"
            return invalid_value(at, given, "The URL is malformed.")
    return None


def _several_accounts(ask: Ask) -> str | None:
    count = len(ask.body.properties.service_accounts)
    return invalid_value(f"{_AT}.serviceAccounts", count, "At most one service account.") if count > 1 else None


def _bad_metadata(ask: Ask) -> str | None:
    why = metadata_problem([(item.key, item.value) for item in ask.body.properties.metadata.items])
    return invalid_value(f"{_AT}.metadata.items", "…", why) if why else None


def metadata_problem(items: list[tuple[str, str]]) -> str | None:
    """Return what is wrong with metadata of a template or an instance, if something is [py-gce Items, doc:metadata]."""
    keys = [key for key, _ in items]
    if bad := next((key for key in keys if not _KEY.fullmatch(key)), None):
        return f"Key '{bad}' must match [a-zA-Z0-9-_]+ and be less than 128 bytes."
    if len(keys) != len(set(keys)):
        return "Keys must be unique."
    if big := next((key for key, value in items if len(value.encode()) > _VALUE_BYTES), None):
        return f"The value of '{big}' must not exceed {_VALUE_BYTES} bytes."
    total = sum(len(key) + len(value.encode()) for key, value in items)
    return None if total <= _METADATA_BYTES else f"All together must not exceed {_METADATA_BYTES} bytes."


def _bad_labels(ask: Ask) -> str | None:
    labels = ask.body.properties.labels
    if wrong := wrong_label(labels):
        return invalid_value(f"{_AT}.labels", wrong, "Lower case letters, digits, - and _, at most 63.")
    return invalid_value(f"{_AT}.labels", len(labels), "At most 64 labels.") if len(labels) > MOST_LABELS else None


def _bad_tags(ask: Ask) -> str | None:
    bad = next((tag for tag in ask.body.properties.tags.items if not is_name(tag)), None)
    return invalid_value(f"{_AT}.tags.items", bad, "Must be a name of RFC 1035.") if bad is not None else None


INSERT = (
    covers(_COVERED),
    BAD_NAME,
    LONG_DESCRIPTION,
    Rule(
        name="template-machine-missing",
        reason="required",
        fact="[mm] machineType is required",
        words="hashicorp/terraform#18781, by analogy",
        check=_no_machine,
    ),
    Rule(
        name="template-machine-url",
        code=HTTPStatus.INTERNAL_SERVER_ERROR,
        reason="internalError",
        fact="[py-gce InstanceProperties.machine_type] a URL there ends in an INTERNAL_ERROR",
        words=OURS,
        check=_machine_url,
    ),
    limit(_machine_not_covered, "template-machine-not-covered", "TPU machine types that GKE's autoscaler knows [CA]"),
    Rule(
        name="template-boot-disk",
        fact="[py-gce AttachedDisk.boot] a VM boots from a disk",
        words=OURS,
        check=_no_boot_disk,
    ),
    Rule(
        name="template-image",
        fact="[py-gce AttachedDiskInitializeParams.source_image] required for boot disks; its formats",
        words=OURS,
        check=_bad_image,
    ),
    Rule(
        name="template-disk",
        fact="[py-gce AttachedDiskInitializeParams] 10 GB and more; the type by name; [CA] types by machine",
        words=OURS,
        check=_bad_disk,
    ),
    Rule(
        name="template-network",
        reason="invalid",
        fact="[mm] network interfaces are required",
        words=OURS,
        check=_no_network,
    ),
    Rule(
        name="template-subnetwork",
        fact="[py-gce NetworkInterface.subnetwork] its formats; a bare name is none of them",
        words="hashicorp/terraform-provider-google, many threads",
        check=_bad_subnetwork,
    ),
    Rule(
        name="template-accounts",
        fact="[doc:access/service-accounts] only one service account per VM is supported",
        words=OURS,
        check=_several_accounts,
    ),
    Rule(
        name="template-metadata",
        fact="[py-gce Items, doc:metadata/setting-custom-metadata] keys, 256 KiB a value, 512 KB in all",
        words=OURS,
        check=_bad_metadata,
    ),
    Rule(
        name="template-labels",
        fact="[doc:labeling-resources] 64 labels of at most 63 characters",
        words=OURS,
        check=_bad_labels,
    ),
    Rule(
        name="template-tags",
        fact="[py-gce Tags.items] 1 to 63 characters of RFC 1035",
        words=OURS,
        check=_bad_tags,
    ),
    *SCHEDULING_RULES,
    EXISTS,
)
DELETE = (UNKNOWN, IN_USE, BUSY)
