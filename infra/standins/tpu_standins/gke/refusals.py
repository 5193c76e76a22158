"""Every refusal of the methods, in the order in which the rows are evaluated.

The order among kinds is partly known: a second create while the first is running returns 400, not 409
[peer, its comment on concurrent reconciles]. That the request is validated before the state of the cluster,
and the limit of operations last, is our choice.
"""

from collections.abc import Mapping

from tpu_standins.cloud.rules import OURS
from tpu_standins.gke.codes import Code
from tpu_standins.gke.config_rules import CONFIG_RULES
from tpu_standins.gke.field_rules import FIELD_RULES, UPDATE_RULES
from tpu_standins.gke.flex.rules import FLEX_RULES
from tpu_standins.gke.label_rules import LABEL_RULES
from tpu_standins.gke.paths import as_written
from tpu_standins.gke.rules import Ask, Refusal, Rule, first_refusal
from tpu_standins.gke.shape_rules import SHAPE_RULES
from tpu_standins.gke.state import CLUSTER_KINDS


def _cluster_unknown(ask: Ask) -> str | None:
    return None if ask.cluster_path in ask.state.clusters else f"Not found: {as_written(ask.cluster_path)}."


def _pool_unknown(ask: Ask) -> str | None:
    return None if ask.pool_path in ask.state.pools else f'Not found: node pool "{ask.name}" not found.'


def _cluster_busy(ask: Ask) -> str | None:
    busy = [op for op in ask.state.running(ask.cluster_path) if op.kind in CLUSTER_KINDS.values()]
    return f"Cluster is running incompatible operation {busy[0].name}." if busy else None


def _pool_busy(ask: Ask) -> str | None:
    busy = ask.state.running_on(ask.pool_path)
    return f"Cluster is running incompatible operation {busy.name}." if busy else None


def _pool_exists(ask: Ask) -> str | None:
    return f"Already exists: {ask.pool_path}." if ask.pool_path in ask.state.pools else None


def _too_many_operations(ask: Ask) -> str | None:
    limit = ask.cluster.concurrent_operations
    if len(ask.state.running(ask.cluster_path)) < limit:
        return None
    return (
        f'Too many operations: cluster "{ask.cluster.path.name}" hits the concurrent operations quota {limit}, '
        "please try again later."
    )


def _operation_ended(ask: Ask) -> str | None:
    ended = ask.operation and ask.operation.ended is not None
    return f"Operation {ask.operation.name} has already completed." if ask.operation and ended else None


def _not_cancellable(ask: Ask) -> str | None:
    cancellable = ask.operation and ask.operation.kind in ask.state.cancellable
    return None if cancellable else "Only node upgrade operations can be cancelled."


CLUSTER_UNKNOWN = Rule(
    name="cluster-unknown",
    code=Code.NOT_FOUND,
    fact="[mm]",
    words="[kcc, tf#5229]",
    check=_cluster_unknown,
)
POOL_UNKNOWN = Rule(
    name="pool-unknown",
    code=Code.NOT_FOUND,
    fact="[mm]",
    words="[kcc]",
    check=_pool_unknown,
)
CLUSTER_BUSY = Rule(
    name="cluster-busy",
    code=Code.FAILED_PRECONDITION,
    fact="[mm, tf#3650, doc:troubleshooting/concurrent-operations] one cluster-level operation at a time",
    words="[doc:troubleshooting/concurrent-operations]",
    check=_cluster_busy,
)
POOL_BUSY = Rule(
    name="pool-busy",
    code=Code.FAILED_PRECONDITION,
    fact="[mm, tf#10366, doc:troubleshooting/concurrent-operations] one operation per node pool",
    words="[doc:troubleshooting/concurrent-operations, peer]",
    check=_pool_busy,
)
POOL_EXISTS = Rule(
    name="pool-exists",
    code=Code.ALREADY_EXISTS,
    fact="[tf#6287, tf#10823, mm] a failed create's pool counts",
    words="terraform-google-modules/terraform-google-kubernetes-engine#367",
    check=_pool_exists,
)
TOO_MANY_OPERATIONS = Rule(
    name="too-many-operations",
    code=Code.RESOURCE_EXHAUSTED,
    fact="[tf#15205, tf#15579] 5 in 2023; 9 used by GKE's own autoscaler [CA flags]",
    words="tf#15205",
    check=_too_many_operations,
)

OPERATION_ENDED = Rule(
    name="operation-ended",
    code=Code.FAILED_PRECONDITION,
    fact='[doc:gcloud container operations cancel] "operations that have already completed can not be cancelled"',
    words=OURS,
    check=_operation_ended,
)
NOT_CANCELLABLE = Rule(
    name="not-cancellable",
    code=Code.INVALID_ARGUMENT,
    fact='[doc:gcloud container operations cancel] "only node pool upgrade operations support cancellation"',
    words="gcloud in 2018, in public workshop notes (operation-1533028657521-59a1c255)",
    check=_not_cancellable,
)

RULES: Mapping[str, tuple[Rule, ...]] = {
    "CreateNodePool": (
        CLUSTER_UNKNOWN,
        *FIELD_RULES,
        *SHAPE_RULES,
        *LABEL_RULES,
        *CONFIG_RULES,
        *FLEX_RULES,
        CLUSTER_BUSY,
        POOL_BUSY,
        POOL_EXISTS,
        TOO_MANY_OPERATIONS,
    ),
    "DeleteNodePool": (CLUSTER_UNKNOWN, POOL_UNKNOWN, CLUSTER_BUSY, POOL_BUSY, TOO_MANY_OPERATIONS),
    "UpdateNodePool": (
        CLUSTER_UNKNOWN,
        POOL_UNKNOWN,
        *UPDATE_RULES,
        *LABEL_RULES,
        CLUSTER_BUSY,
        POOL_BUSY,
        TOO_MANY_OPERATIONS,
    ),
    "CancelOperation": (OPERATION_ENDED, NOT_CANCELLABLE),
    "GetNodePool": (CLUSTER_UNKNOWN, POOL_UNKNOWN),
    "ListNodePools": (CLUSTER_UNKNOWN,),
    "GetCluster": (CLUSTER_UNKNOWN,),
}


def refusal(method: str, ask: Ask) -> Refusal | None:
    """Return the error that GKE would return, or None if it accepts the request."""
    return first_refusal(ask, RULES[method])
