"""The fields of a requested node pool, or update of one, that the local GKE supports: any other is refused."""

from google.cloud.container_v1 import NodePool, UpdateNodePoolRequest

from tpu_standins.cloud.rules import OURS, Covered, not_covered, strays, whole
from tpu_standins.gke.codes import Code
from tpu_standins.gke.messages import etag
from tpu_standins.gke.rules import Ask, Rule, limit

_WHOLE = (
    *("name", "initial_node_count", "autoscaling", "management", "max_pods_constraint", "locations"),
    *("placement_policy", "upgrade_settings", "queued_provisioning", "node_drain_config", "maintenance_policy"),
)
"""The fields of a pool that are covered with all that is in them."""
_CONFIG = (
    *("machine_type", "disk_size_gb", "disk_type", "boot_disk", "boot_disk_kms_key", "enable_confidential_storage"),
    *("secondary_boot_disks", "gcfs_config", "image_type", "service_account", "oauth_scopes", "labels"),
    *("resource_labels", "taints", "tags", "metadata", "spot", "preemptible", "flex_start", "max_run_duration"),
    *("reservation_affinity", "shielded_instance_config", "workload_metadata_config", "gvnic"),
)
_NETWORK = ("additional_node_network_configs", "accelerator_network_profile")
_POOL: Covered = {
    **whole(_WHOLE),
    "config": whole(_CONFIG),
    "network_config": whole(_NETWORK),
}


def _strays(ask: Ask) -> str | None:
    return not_covered(strays(ask.spec, _POOL, "nodePool"), "GKE")


FIELD_RULES = (limit(_strays, "field-not-covered"),)

_CHANGED = frozenset({"labels", "resource_labels"})
_UPDATES: Covered = whole(_CHANGED | {"name", "etag"})


def updated(spec: NodePool, update: UpdateNodePoolRequest) -> NodePool:
    """Return a pool as it would be: labels are replaced, not merged [doc:how-to/update-existing-nodepools]."""
    after = NodePool(spec)
    if "labels" in update:
        after.config.labels = dict(update.labels.labels)
    if "resource_labels" in update:
        after.config.resource_labels = dict(update.resource_labels.labels)
    return after


def _update_strays(ask: Ask) -> str | None:
    return not_covered(strays(ask.update, _UPDATES, "update"), "GKE") if ask.update else None


def _changes(ask: Ask) -> frozenset[str]:
    return frozenset(name for name in _CHANGED if ask.update and name in ask.update)


def _nothing_to_update(ask: Ask) -> str | None:
    return None if _changes(ask) else "Must specify a field to update."


def _two_at_once(ask: Ask) -> str | None:
    return "Only one field can be updated at a time." if len(_changes(ask)) > 1 else None


def _outdated(ask: Ask) -> str | None:
    given = ask.update.etag if ask.update else ""
    current = etag(ask.state.pools[ask.pool_path])
    return f"The etag {given} does not match the current etag of the node pool." if given not in {"", current} else None


UPDATE_RULES = (
    limit(_update_strays, "update-not-covered"),
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
