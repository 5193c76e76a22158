"""The fields of a requested node pool that the local GKE supports: any other is refused, not ignored."""

from collections.abc import Iterator
from typing import Any

from infra.local.gke.codes import Code
from infra.local.gke.rules import OURS, Ask, Rule

_POOL = frozenset(
    {
        "name",
        "config",
        "initial_node_count",
        "autoscaling",
        "management",
        "max_pods_constraint",
        "locations",
        "network_config",
        "placement_policy",
        "upgrade_settings",
        "queued_provisioning",
        "node_drain_config",
        "maintenance_policy",
    }
)
_CONFIG = frozenset(
    {
        "machine_type",
        "disk_size_gb",
        "disk_type",
        "boot_disk",
        "boot_disk_kms_key",
        "enable_confidential_storage",
        "secondary_boot_disks",
        "gcfs_config",
        "image_type",
        "service_account",
        "oauth_scopes",
        "labels",
        "resource_labels",
        "taints",
        "tags",
        "metadata",
        "spot",
        "preemptible",
        "flex_start",
        "max_run_duration",
        "reservation_affinity",
        "shielded_instance_config",
        "workload_metadata_config",
        "gvnic",
    }
)
_NETWORK = frozenset({"additional_node_network_configs", "accelerator_network_profile"})


def _strays(ask: Ask) -> Iterator[str]:
    spec = ask.spec
    known = (
        ("node_pool", spec, _POOL),
        ("node_pool.config", spec.config, _CONFIG),
        ("node_pool.network_config", spec.network_config, _NETWORK),
    )
    for where, message, fields in known:
        yield from (f"{where}.{name}" for name in _set_in(message) if name not in fields)


def _set_in(message: Any) -> list[str]:
    """Return the names of the fields of one of Google's messages that are not at their defaults."""
    return [field.name for field, _ in type(message).pb(message).ListFields()]


def _not_covered(ask: Ask) -> str | None:
    strays = list(_strays(ask))
    return f"Not implemented by the local GKE: {', '.join(strays)}." if strays else None


FIELD_RULES = (
    Rule(
        name="field-not-covered",
        code=Code.UNIMPLEMENTED,
        fact="a limit of the local GKE",
        words=OURS,
        check=_not_covered,
    ),
)
