"""The fields of a requested node pool, or update of one, that the local GKE supports: any other is refused."""

from collections.abc import Iterator
from typing import Any

from google.cloud.container_v1 import NodePool, UpdateNodePoolRequest

from infra.local.gke.codes import Code
from infra.local.gke.messages import etag
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

_CHANGED = frozenset({"labels", "resource_labels"})
_UPDATES = _CHANGED | {"name", "etag"}


def updated(spec: NodePool, update: UpdateNodePoolRequest) -> NodePool:
    """Return a pool as it would be: labels are replaced, not merged [doc:how-to/update-existing-nodepools]."""
    after = NodePool(spec)
    if "labels" in update:
        after.config.labels = dict(update.labels.labels)
    if "resource_labels" in update:
        after.config.resource_labels = dict(update.resource_labels.labels)
    return after


def _update_not_covered(ask: Ask) -> str | None:
    strays = sorted(set(_set_in(ask.update)) - _UPDATES) if ask.update else []
    return f"Not implemented by the local GKE: {', '.join(strays)}." if strays else None


def _changes(ask: Ask) -> frozenset[str]:
    return _CHANGED.intersection(_set_in(ask.update)) if ask.update else frozenset()


def _nothing_to_update(ask: Ask) -> str | None:
    return None if _changes(ask) else "Must specify a field to update."


def _two_at_once(ask: Ask) -> str | None:
    return "Only one field can be updated at a time." if len(_changes(ask)) > 1 else None


def _outdated(ask: Ask) -> str | None:
    given = ask.update.etag if ask.update else ""
    current = etag(ask.state.pools[ask.pool_path])
    return f"The etag {given} does not match the current etag of the node pool." if given not in {"", current} else None


UPDATE_RULES = (
    Rule(
        name="update-not-covered",
        code=Code.UNIMPLEMENTED,
        fact="a limit of the local GKE",
        words=OURS,
        check=_update_not_covered,
    ),
    Rule(
        name="update-of-nothing",
        code=Code.INVALID_ARGUMENT,
        fact="[mm] one request for each changed field, none without one",
        words=OURS,
        check=_nothing_to_update,
    ),
    Rule(
        name="update-of-two",
        code=Code.INVALID_ARGUMENT,
        fact="[mm] sends one request for each changed field; that two are refused is ours",
        words=OURS,
        check=_two_at_once,
    ),
    Rule(
        name="update-outdated",
        code=Code.ABORTED,
        fact="[py-gke UpdateNodePoolRequest.etag]",
        words="ours, after the documentation of the field",
        check=_outdated,
    ),
)
