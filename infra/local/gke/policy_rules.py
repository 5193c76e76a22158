"""Refusals of CreateNodePool for workload policies, which place tpu7x slices, in table order.

They are evaluated after the rows that refuse unknown machine types.
"""

from google.cloud.container_v1 import NodePool

from infra.local.gke.codes import Code
from infra.local.gke.machines import is_single_host
from infra.local.gke.paths import policy_path
from infra.local.gke.rules import OURS, Ask, Rule

_COMPACT = NodePool.PlacementPolicy.Type.COMPACT


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


def _and_more(ask: Ask) -> str | None:
    policy = ask.spec.placement_policy
    both = policy.policy_name and (policy.tpu_topology or policy.type_)
    return "placement_policy.policy_name excludes type and tpu_topology." if both else None


def _compact(ask: Ask) -> str | None:
    if not ask.machine.by_policy or ask.spec.placement_policy.type_ != _COMPACT:
        return None
    return (
        f"Creation of a managed instance group with {ask.machine.name} machine type with placement policy is not "
        "supported. Use workload policy instead."
    )


def _missing(ask: Ask) -> str | None:
    policy = ask.spec.placement_policy
    several = ask.spec.initial_node_count > 1 or bool(policy.tpu_topology)
    if not (ask.machine.by_policy and several) or policy.policy_name:
        return None
    return f'Multi-host node pools of machine type "{ask.machine.name}" require a workload policy.'


POLICY_RULES = (
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
        name="policy-and-more",
        code=Code.INVALID_ARGUMENT,
        fact="[xpk] excludes COMPACT and a topology; [CA] sends a topology with it",
        words=OURS,
        check=_and_more,
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
        check=_missing,
    ),
)
