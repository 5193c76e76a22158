"""How many instances of the functions Cloud Run's quota of CPUs in a region allows."""

import re
from collections.abc import Iterator
from pathlib import Path

from infra.preflight.answers import Answer, Missing
from infra.preflight.findings import Finding, error, note, unread
from infra.preflight.quotas import Quota, limit_of, list_of

QUOTA = Quota("CpuAllocPerProjectRegion")
SERVICE = "run"
THOUSANDTHS = 1_000
"""The quota is in thousandths of a CPU; an instance has one CPU."""
FUNCTIONS = 3
"""Of each there are up to `max_instances` instances."""
OTHERS = 2
"""The most instances of `notify`."""
FILE = "infra/terraform/terraform.tfvars"
_SET = re.compile(r'^\s*max_instances\s*=\s*"?(\d+)"?', re.MULTILINE)
_DEFAULT = re.compile(r'^variable "max_instances" \{\n(?:  .*\n|\n)*?  default\s*= (\d+)$', re.MULTILINE)


def wanted(terraform: Path) -> int:
    """Return the variable `max_instances` of the Terraform root in a folder: as it is set there, or its default."""
    values = terraform / "terraform.tfvars"
    chosen = _SET.search(values.read_text()) if values.exists() else None
    found = chosen or _DEFAULT.search((terraform / "variables.tf").read_text())
    if found is None:
        raise ValueError(f"{terraform}/variables.tf has no variable max_instances with a number as its default")
    return int(found[1])


def together(max_instances: int) -> int:
    """Return how many CPUs all functions have if each has as many instances as it may."""
    return FUNCTIONS * max_instances + OTHERS


def instance_findings(project: str, region: str, max_instances: int, answer: Answer) -> Iterator[Finding]:
    """Yield whether so many instances fit, by the first row that holds.

    | the quota has                             | then                                                            |
    |-------------------------------------------|-----------------------------------------------------------------|
    | another id, which Cloud Quotas knows      | a note: it is not known                                         |
    | no limit, or nothing is told              | nothing                                                         |
    | fewer CPUs than one function may have     | an error: Cloud Run refuses the function                        |
    | fewer CPUs than all functions may have    | a note: while all are busy, messages wait                       |
    | else                                      | nothing                                                         |
    """
    yield from unread(f"how many CPUs Cloud Run allows in {region}", answer)
    if isinstance(answer, Missing):
        yield note(
            f"It is not known whether {region} has CPUs for max_instances = {max_instances}, which are "
            f"{together(max_instances)}: Cloud Quotas does not know {QUOTA.id} of Cloud Run.",
            f"{list_of(SERVICE, project)} --filter 'quotaId ~ Cpu'",
        )
    limit = limit_of(answer, QUOTA, region)
    if limit is None or limit < 0:
        return
    cpus = limit // THOUSANDTHS
    fits = max(0, cpus - OTHERS) // FUNCTIONS
    ask = (
        f"gcloud beta quotas preferences create --service {SERVICE}.googleapis.com --project {project} "
        f"--quota-id {QUOTA.id} --dimensions region={region} --preferred-value {together(max_instances) * THOUSANDTHS}"
    )
    remedies = (f"max_instances = {fits} # in {FILE}", ask) if fits else (ask,)
    has = f"Cloud Run's quota of {region} has {cpus} CPUs ({QUOTA.id})"
    if cpus < max_instances:
        yield error(f"{has}: a function of {max_instances} instances, each with one, is refused.", *remedies)
    elif cpus < together(max_instances):
        yield note(
            f"{has}. With max_instances = {max_instances} the functions have {together(max_instances)} at the most: "
            "while all are busy, some messages wait until they are brought again.",
            *remedies,
        )
