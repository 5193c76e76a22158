"""What Compute Engine refuses of a resource policy; of workload policies alone, the others are not covered."""

from tpu_standins.cloud.machines import dimensions
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

_COVERED: Covered = {
    "name": {},
    "description": {},
    "region": {},
    "workload_policy": {"type": {}, "accelerator_topology": {}, "accelerator_topology_mode": {}},
}
_FIELD = "resource.workloadPolicy"


def _other_policy(ask: Ask) -> str | None:
    given = "workload_policy" in ask.body
    return None if given else "Policies other than workload policies are not implemented by the local Compute Engine."


def _other_mode(ask: Ask) -> str | None:
    mode = ask.body.workload_policy.accelerator_topology_mode
    return None if mode in ("", "AUTO_CONNECT") else f"Mode {mode} is not implemented by the local Compute Engine."


def _no_type(ask: Ask) -> str | None:
    return None if ask.body.workload_policy.type_ else missing(f"{_FIELD}.type")


def _other_type(ask: Ask) -> str | None:
    kind = ask.body.workload_policy.type_
    return None if kind == "HIGH_THROUGHPUT" else invalid_value(f"{_FIELD}.type", kind, "Must be HIGH_THROUGHPUT.")


def _bad_topology(ask: Ask) -> str | None:
    topology = ask.body.workload_policy.accelerator_topology
    if not topology or dimensions(topology):
        return None
    return invalid_value(f"{_FIELD}.acceleratorTopology", topology, "Must be a topology such as 2x4 or 4x4x4.")


INSERT = (
    covers(_COVERED),
    limit(_other_policy, "policy-not-covered"),
    limit(_other_mode, "mode-not-covered", "PROVISION_ONLY is for dynamic slices"),
    BAD_NAME,
    LONG_DESCRIPTION,
    Rule(
        name="policy-without-type",
        reason="required",
        fact="[doc:instance-groups/about-workload-policies] the type must be given",
        words="hashicorp/terraform#18781, by analogy",
        check=_no_type,
    ),
    Rule(
        name="policy-type",
        fact="[doc:instance-groups/about-workload-policies] only HIGH_THROUGHPUT can be given",
        words=OURS,
        check=_other_type,
    ),
    Rule(
        name="policy-topology",
        fact="[py-gce] formats 16x16 and 4x4x4; that it is checked at once is not known",
        words=OURS,
        check=_bad_topology,
    ),
    EXISTS,
)
DELETE = (UNKNOWN, IN_USE, BUSY)
