"""Refusals of CreateNodePool for the pool's name, machines, topology, zones and size, in table order.

Those for workload policies, which place tpu7x slices, come after the rows that refuse unknown machine types.
"""

import re

from google.cloud.container_v1 import NodePool

from tpu_standins.cloud.machines import (
    COVERED_FAMILIES,
    MACHINES,
    dimensions,
    host_count,
    is_multi_host,
    is_single_host,
)
from tpu_standins.cloud.rules import OURS
from tpu_standins.gke.codes import Code
from tpu_standins.gke.paths import policy_path
from tpu_standins.gke.rules import Ask, Rule

_NAME = r"(?:[a-z](?:[-a-z0-9]{0,38}[a-z0-9])?)"
_NODES_PER_ZONE = 1_000
_COMPACT = NodePool.PlacementPolicy.Type.COMPACT


def _name(ask: Ask) -> str | None:
    if re.fullmatch(_NAME, ask.name):
        return None
    return (
        f'Invalid value for field "node_pool.name": "{ask.name}". Must be a match of regex \'{_NAME}\' '
        "(only lowercase alphanumerics and '-' allowed, must start with a letter and end with an "
        "alphanumeric, and must be no longer than 40 characters)."
    )


def _region(ask: Ask) -> str | None:
    region = ask.cluster.path.region
    stray = [zone for zone in ask.zones if not re.fullmatch(rf"{re.escape(region)}-[a-z]+", zone)]
    return f'Node pool location "{stray[0]}" is not a zone of region "{region}".' if stray else None


def _zone(ask: Ask) -> str | None:
    unknown = [zone for zone in ask.zones if zone not in ask.cluster.zones]
    return f'Node pool location "{unknown[0]}" does not exist.' if unknown else None


def _zone_twice(ask: Ask) -> str | None:
    return "Node pool locations must be unique." if len(set(ask.zones)) < len(ask.zones) else None


def _machine_not_covered(ask: Ask) -> str | None:
    kind = ask.spec.config.machine_type
    if kind.startswith(COVERED_FAMILIES):
        return None
    return f'Machine type "{kind}" is not implemented by the local GKE, only {", ".join(MACHINES)}.'


def _machine_unknown(ask: Ask) -> str | None:
    kind = ask.spec.config.machine_type
    return None if kind in MACHINES else f'Invalid machine type "{kind}" in zone "{ask.zones[0]}": GCE_NOT_FOUND'


def _topology_malformed(ask: Ask) -> str | None:
    if not ask.topology or dimensions(ask.topology) is not None:
        return None
    return f'Invalid TPU topology "{ask.topology}": must be of the form AxB or AxBxC.'


def _topology_single_host(ask: Ask) -> str | None:
    if not is_single_host(ask.machine, ask.topology):
        return None
    return (
        "TPU topology can't be specified with single-host TPU slice pool; please remove the tpu_topology from the "
        "node pool creation request if the node pool is intented to run with single-host TPU slice nodes."
    )


def _topology_illegal(ask: Ask) -> str | None:
    if not ask.topology or is_multi_host(ask.machine, ask.topology):
        return None
    return f'TPU topology "{ask.topology}" is not supported for machine type "{ask.machine.name}".'


def _compact_alone(ask: Ask) -> str | None:
    alone = ask.spec.placement_policy.type_ == _COMPACT and not ask.topology
    return "Placement policy of type COMPACT requires tpu_topology for TPU machine types." if alone else None


def _topology_not_compact(ask: Ask) -> str | None:
    policy = ask.spec.placement_policy
    missing = bool(policy.tpu_topology) and policy.type_ != _COMPACT and not policy.policy_name
    return "tpu_topology requires a placement policy of type COMPACT." if missing else None


def _one_zone(ask: Ask) -> str | None:
    if not ask.topology or len(ask.zones) == 1:
        return None
    return f"Multi-host TPU node pool must have exactly one location, got {len(ask.zones)}."


def _empty(ask: Ask) -> str | None:
    filled = ask.spec.initial_node_count > 0 or ask.spec.config.flex_start
    return None if filled else "Pools of no nodes are not implemented by the local GKE, except those of flex-start."


def _size(ask: Ask) -> str | None:
    count = ask.spec.initial_node_count
    if not ask.topology or ask.spec.config.flex_start or count == host_count(ask.machine, ask.topology):
        return None
    return f"Initial node count {count} is not a valid size of TPU pod slice with topology {ask.topology}"


def _largest_size(ask: Ask) -> str | None:
    scaling = ask.spec.autoscaling
    if not ask.topology or not scaling.enabled:
        return None
    if scaling.max_node_count == host_count(ask.machine, ask.topology):
        return None
    most = scaling.max_node_count
    return f"Maximum node count {most} is not a valid size of TPU pod slice with topology {ask.topology}"


def _too_many(ask: Ask) -> str | None:
    count = ask.spec.initial_node_count
    if count <= _NODES_PER_ZONE:
        return None
    return f"Node pool size {count} exceeds the limit of {_NODES_PER_ZONE} nodes per zone."


def _for_v6e(ask: Ask) -> str | None:
    named = ask.spec.placement_policy.policy_name and ask.machine.name.startswith("ct6e-")
    return "Workload policies for v6e are not implemented by the local GKE." if named else None


def _unknown(ask: Ask) -> str | None:
    name = ask.spec.placement_policy.policy_name
    if not name or ask.policy_topology is not None:
        return None
    return f"The resource '{policy_path(ask.cluster.path, name)}' was not found"


def _not_taken(ask: Ask) -> str | None:
    if not ask.spec.placement_policy.policy_name:
        return None
    kind = ask.machine.name
    if ask.machine.by_policy and is_single_host(ask.machine, ask.topology):
        return f'Workload policies are not supported for single-host node pools of machine type "{kind}".'
    return None if ask.machine.by_policy else f'Workload policies are not supported for machine type "{kind}".'


def _of_another_topology(ask: Ask) -> str | None:
    policy = ask.spec.placement_policy
    if not (policy.policy_name and policy.tpu_topology) or policy.tpu_topology == ask.policy_topology:
        return None
    return f"Workload policy {policy.policy_name} is of topology {ask.policy_topology}, not of {policy.tpu_topology}."


def _compact(ask: Ask) -> str | None:
    if not ask.machine.by_policy or ask.spec.placement_policy.type_ != _COMPACT:
        return None
    return (
        f"Creation of a managed instance group with {ask.machine.name} machine type with placement policy is not "
        "supported. Use workload policy instead."
    )


def _policy_missing(ask: Ask) -> str | None:
    policy = ask.spec.placement_policy
    several = ask.spec.initial_node_count > 1 or bool(policy.tpu_topology)
    if not (ask.machine.by_policy and several) or policy.policy_name:
        return None
    return f'Multi-host node pools of machine type "{ask.machine.name}" require a workload policy.'


_POLICY_RULES = (
    Rule(
        name="policy-for-v6e-not-covered",
        code=Code.UNIMPLEMENTED,
        fact="a limit of the local GKE",
        words=OURS,
        check=_for_v6e,
    ),
    Rule(
        name="policy-unknown",
        code=Code.INVALID_ARGUMENT,
        fact="[py-gke PlacementPolicy.policy_name] must exist in the project and region",
        words=OURS,
        check=_unknown,
    ),
    Rule(
        name="policy-not-taken",
        code=Code.INVALID_ARGUMENT,
        fact="[xpk requires_workload_policy, AI-Hypercomputer/xpk#825] only tpu7x and tpu7 of several hosts",
        words=OURS,
        check=_not_taken,
    ),
    Rule(
        name="policy-of-another-topology",
        code=Code.INVALID_ARGUMENT,
        fact="[CA] sends its topology with it, and vllm-project/ci-infra#547 saw GKE store both",
        words=OURS,
        check=_of_another_topology,
    ),
    Rule(
        name="compact-for-v7",
        code=Code.INVALID_ARGUMENT,
        fact="[xpk, ctk, CA, doc:tpu-ironwood] tpu7x of several hosts",
        words="vllm-project/ci-infra#547, as the error of a pool whose create had been accepted",
        check=_compact,
    ),
    Rule(
        name="policy-missing",
        code=Code.INVALID_ARGUMENT,
        fact="[xpk, ctk, CA, doc:tpu-ironwood] tpu7x of several hosts",
        words=OURS,
        check=_policy_missing,
    ),
)

SHAPE_RULES = (
    Rule(
        name="pool-name",
        code=Code.INVALID_ARGUMENT,
        fact="[CA placement.go, mm] at most 40 characters",
        words="pulumi/pulumi-gcp#1510",
        check=_name,
    ),
    Rule(
        name="zone-of-another-region",
        code=Code.INVALID_ARGUMENT,
        fact="[py-gke NodePool.locations]",
        words=OURS,
        check=_region,
    ),
    Rule(name="zone-unknown", code=Code.INVALID_ARGUMENT, fact="[py-gke NodePool.locations]", words=OURS, check=_zone),
    Rule(
        name="zone-twice", code=Code.INVALID_ARGUMENT, fact="[py-gke NodePool.locations]", words=OURS, check=_zone_twice
    ),
    Rule(
        name="machine-type-not-covered",
        code=Code.UNIMPLEMENTED,
        fact="a limit of the local GKE",
        words=OURS,
        check=_machine_not_covered,
    ),
    Rule(
        name="machine-type-unknown",
        code=Code.INVALID_ARGUMENT,
        fact="[CA deprecated_machine_types_config.go]",
        words="keras-team/kinetic#305",
        check=_machine_unknown,
    ),
    *_POLICY_RULES,
    Rule(
        name="topology-malformed",
        code=Code.INVALID_ARGUMENT,
        fact="[CA InvalidTpuTopology]",
        words=OURS,
        check=_topology_malformed,
    ),
    Rule(
        name="topology-on-a-single-host",
        code=Code.INVALID_ARGUMENT,
        fact="[xpk, CA] single hosts take no topology",
        words="AI-Hypercomputer/xpk#825",
        check=_topology_single_host,
    ),
    Rule(
        name="topology-illegal-for-the-machine",
        code=Code.INVALID_ARGUMENT,
        fact="[CA InvalidTpuTopology, kray, xpk] sorted and known",
        words=OURS,
        check=_topology_illegal,
    ),
    Rule(
        name="compact-without-topology",
        code=Code.INVALID_ARGUMENT,
        fact="[xpk, CA] single hosts take no placement policy",
        words=OURS,
        check=_compact_alone,
    ),
    Rule(
        name="topology-without-compact",
        code=Code.INVALID_ARGUMENT,
        fact="[CA autoscaling_gke_client_v1beta1.go, peer, xpk] COMPACT and tpu_topology",
        words=OURS,
        check=_topology_not_compact,
    ),
    Rule(
        name="multi-host-in-several-zones",
        code=Code.INVALID_ARGUMENT,
        fact="[CA gkeclient/fake/client.go validateNodePool]",
        words=OURS,
        check=_one_zone,
    ),
    Rule(name="empty-not-covered", code=Code.UNIMPLEMENTED, fact="a limit of the local GKE", words=OURS, check=_empty),
    Rule(
        name="size-is-not-the-slice",
        code=Code.INVALID_ARGUMENT,
        fact="[doc:concepts/tpus, CA] size 0 or N only",
        words="ours, after vllm-project/ci-infra#545",
        check=_size,
    ),
    Rule(
        name="largest-size-is-not-the-slice",
        code=Code.INVALID_ARGUMENT,
        fact="[CA] autoscaling maximum is the slice",
        words="vllm-project/ci-infra#545",
        check=_largest_size,
    ),
    Rule(
        name="too-many-nodes-in-a-zone",
        code=Code.INVALID_ARGUMENT,
        fact="[doc:quotas] 1,000 nodes per pool and zone",
        words=OURS,
        check=_too_many,
    ),
)
