"""Workload policies, which slices of tpu7x with several hosts need, where the settings name them.

Terraform makes those whose names tell a topology of several hosts (infra/terraform/workload_policies.tf).
"""

import re
from collections.abc import Iterator, Mapping

from infra.preflight.answers import Answer, Body, Found, Missing
from infra.preflight.findings import Finding, error, unread, warning
from infra.preflight.place import Place
from tpu_slices.domain.model.clusters import ClusterSettings

CHIPS_OF_A_HOST = 4
_TOPOLOGY = re.compile(r"([1-9]\d*)x([1-9]\d*)x([1-9]\d*)")
_MADE_BY_US = "Made by the TPU slice provisioner of {project}"


def policy_names(settings: ClusterSettings) -> list[str]:
    """Return the workload policies that the settings name in full."""
    allowed = [settings.policy.everyone, *settings.policy.namespaces.values()]
    names = [settings.pools.workload_policy, *(name for each in allowed for name in each.workload_policies)]
    return [name for name in dict.fromkeys(names) if not set(name) & set("{}*")]


def topology_of(name: str) -> str | None:
    """Return the one topology of several hosts that a name tells."""
    found = [match for part in name.split("-") if (match := _TOPOLOGY.fullmatch(part))]
    if len(found) != 1:
        return None
    a, b, c = (int(side) for side in found[0].groups())
    return found[0][0] if a * b * c > CHIPS_OF_A_HOST else None


def workload_policy_findings(
    settings: ClusterSettings, project: str, policies: Mapping[str, Answer]
) -> Iterator[Finding]:
    """Yield what is wrong with the policies of these names; `project` is the provisioner's."""
    place = Place.of(settings.path)
    for name, answer in policies.items():
        topology = topology_of(name)
        yield from unread(f"whether the workload policy {name} exists", answer)
        if isinstance(answer, Found):
            yield from _existing(name, topology, answer.body, project)
        elif isinstance(answer, Missing) and topology is None:
            yield warning(
                f"There is no workload policy {name} in {place.region}, and its name does not tell Terraform a "
                "topology to make it of: slices that name it are refused by GKE.",
                f"gcloud compute resource-policies create workload-policy {name} --type high-throughput "
                f"--accelerator-topology AxBxC --region {place.region} --project {place.project}",
            )


def _existing(name: str, topology: str | None, body: Body, project: str) -> Iterator[Finding]:
    policy = body.get("workloadPolicy", {})
    if policy.get("type") != "HIGH_THROUGHPUT" or topology not in {None, policy.get("acceleratorTopology")}:
        yield error(f"The resource policy {name} is no workload policy HIGH_THROUGHPUT of {topology or 'TPUs'}.")
    elif topology is not None and body.get("description") != _MADE_BY_US.format(project=project):
        yield warning(
            f"The workload policy {name} was made by somebody else. Unless infra/terraform/terraform.tfvars names it, "
            "the build would make it, and fail.",
            f'existing_workload_policies = ["{name}"]',
        )
