"""Workload policies, which slices of tpu7x with several hosts need, where the settings name them."""

import re
from collections.abc import Iterator, Mapping

from infra.preflight.answers import Answer, Denied, Found, Missing, Unreachable, unknown
from infra.preflight.findings import Finding, error, warning
from infra.preflight.place import Place
from tpu_slices.domain.model.clusters import ClusterSettings

CHIPS_OF_A_HOST = 4
_TOPOLOGY = re.compile(r"(?:^|-)([1-9]\d*)x([1-9]\d*)x([1-9]\d*)(?:-|$)")


def policy_names(settings: ClusterSettings) -> list[str]:
    """Return the workload policies that the settings name in full."""
    allowed = [settings.policy.everyone, *settings.policy.namespaces.values()]
    names = [settings.pools.workload_policy, *(name for each in allowed for name in each.workload_policies)]
    return [name for name in dict.fromkeys(names) if not set(name) & set("{}*")]


def workload_policy_findings(settings: ClusterSettings, policies: Mapping[str, Answer]) -> Iterator[Finding]:
    place = Place.of(settings.path)
    for name, answer in policies.items():
        topology = topology_of(name)
        match answer:
            case Missing():
                yield warning(
                    f"There is no workload policy {name} in {place.region}: slices that name it are refused by GKE.",
                    f"gcloud compute resource-policies create workload-policy {name} --type high-throughput "
                    f"--accelerator-topology {topology or 'AxBxC'} --region {place.region} --project {place.project}",
                )
            case Denied() | Unreachable():
                yield warning(f"It could not be read whether the workload policy {name} exists: {unknown(answer)}")
            case Found(body) if not _serves(body, topology):
                yield error(f"The resource policy {name} is no workload policy HIGH_THROUGHPUT of {topology or 'TPUs'}.")


def topology_of(name: str) -> str | None:
    """Return the one topology of several hosts that a name tells."""
    found = [match.groups() for match in _TOPOLOGY.finditer(name)]
    if len(found) != 1:
        return None
    a, b, c = found[0]
    return f"{a}x{b}x{c}" if int(a) * int(b) * int(c) > CHIPS_OF_A_HOST else None


def _serves(body: Mapping[str, object], topology: str | None) -> bool:
    policy = body.get("workloadPolicy")
    if not isinstance(policy, Mapping):
        return False
    return policy.get("type") == "HIGH_THROUGHPUT" and topology in {None, policy.get("acceleratorTopology")}
