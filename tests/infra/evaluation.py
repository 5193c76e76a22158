"""Lets Terraform itself evaluate the files, as far as it can without a provider."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from google.cloud.monitoring_dashboard_v1 import Dashboard
from google.protobuf.json_format import MessageToDict, ParseDict

from tests.infra.sources import ROOT, TERRAFORM, attributes, blocks

PROJECT = "shop-project"
CLUSTERS = {"blue": PROJECT, "red": "other-project"}
NUMBER = "123456789"

SELDOM_COLLECTED = {"GOGC": "400"}
"""Terraform and kubectl run for less than a second here: Go would collect garbage for a third of it."""

_DATA = {
    "data.google_project.gke[place.project].number": f'"{NUMBER}"',
    "google_service_account.relay[id].member": (
        '"serviceAccount:${local.relay_accounts[id]}@${var.project}.iam.gserviceaccount.com"'
    ),
}
"""What the evaluated locals know only once it is made or read, and a value."""
_READ: Mapping[str, object] = {"noted_before": [], "dropped_pools": {}}
"""Locals that only a provider can tell, and what they are at a first apply."""


def terraform(folder: Path, *arguments: str, text: str = "") -> str:
    """Run Terraform and return its output; an AssertionError has its error."""
    ran = _ran(folder, arguments, text)
    assert ran.returncode == 0, ran.stderr or ran.stdout
    return ran.stdout


def planning(folder: Path, *options: str) -> str:
    """Return what Terraform says while it plans, whether it can or not."""
    ran = _ran(folder, ("plan", *options), "")
    return ran.stdout + ran.stderr


def _ran(folder: Path, arguments: Sequence[str], text: str) -> subprocess.CompletedProcess[str]:
    command = ["setpriv", "--pdeathsig", "TERM", "terraform", *arguments]
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "CHECKPOINT_DISABLE": "1", **SELDOM_COLLECTED}
    return subprocess.run(command, cwd=folder, env=environment, input=text, capture_output=True, text=True, check=False)


def prepared(folder: Path) -> Path:
    """Return a folder with the variables, the locals that need no provider, and the files that they read."""
    target = folder / "infra" / "terraform"
    target.mkdir(parents=True)
    for name in ("messaging.yaml", "firestore.indexes.json"):
        shutil.copy(ROOT / "infra" / name, folder / "infra")
    shutil.copytree(ROOT / "docs", folder / "docs")
    (folder / "pyproject.toml").write_text('[project]\nversion = "1.2.3rc1"\nrequires-python = ">=3.11"\n')
    for cluster, project in CLUSTERS.items():
        write_cluster(target, cluster, project)
    shutil.copy(TERRAFORM / "variables.tf", target)
    (target / "locals.tf").write_text("\n".join(evaluable()))
    read(target, {})
    return target


def evaluable() -> Iterator[str]:
    for path in sorted(TERRAFORM.glob("*.tf")):
        text = path.read_text()
        for expression, value in _DATA.items():
            text = text.replace(expression, value)
        for found in re.findall(r"^locals \{\n.*?^\}$", text, flags=re.MULTILINE | re.DOTALL):
            if "data." not in found:
                yield found


def write_cluster(folder: Path, cluster: str, project: str = PROJECT, settings: str = "") -> None:
    """Write a cluster's file; Terraform reads those of the project `PROJECT`."""
    clusters = folder.parent / "clusters" / PROJECT
    clusters.mkdir(parents=True, exist_ok=True)
    (clusters / f"{cluster}.yaml").write_text(
        f"path: projects/{project}/locations/us-central2/clusters/{cluster}\n"
        + (settings or "pools: {service_account: nodes@shop-project.iam.gserviceaccount.com}\n")
    )


def write_self_managed(folder: Path, cluster: str, project: str = PROJECT, settings: str = "") -> None:
    """Write the file of a cluster whose slices are on Compute Engine."""
    clusters = folder.parent / "clusters" / PROJECT
    clusters.mkdir(parents=True, exist_ok=True)
    (clusters / f"{cluster}.yaml").write_text(
        f"path: projects/{project}/locations/us-central1\ncompute: {{image: projects/p/global/images/i}}\n"
        + (settings or "pools: {service_account: nodes@shop-project.iam.gserviceaccount.com}\n")
    )


def read(folder: Path, found: Mapping[str, object]) -> None:
    """Let Terraform find these values in Google Cloud."""
    (folder / "read.tf.json").write_text(json.dumps({"locals": {**_READ, **found}}))


def evaluated(folder: Path, expressions: Mapping[str, str], **variables: str) -> dict[str, Any]:
    queries = ", ".join(f'"{name}" = {expression}' for name, expression in expressions.items())
    values = {"project": PROJECT, "region": "us-central1", "firestore_location": "nam5", **variables}
    given = [f"-var={name}={value}" for name, value in values.items()]
    answer = terraform(folder, "console", *given, text=f"jsonencode({{{queries}}})\n")
    answers: dict[str, Any] = json.loads(json.loads(answer))
    return answers


def instances(folder: Path) -> dict[str, list[str]]:
    """Return the keys of the instances of every resource with `for_each`, by its address."""
    each = {
        f"{kind}.{name}": f"keys({{for key, _ in {_expression(body)} : key => 0}})"
        for block in blocks("resource")
        for kind, named in block.items()
        for name, body in named.items()
        if "for_each" in body
    }
    return evaluated(folder, each)


def expression(text: str) -> str:
    return text.removeprefix("${").removesuffix("}")


def _expression(body: dict[str, str]) -> str:
    text = expression(body["for_each"])
    return (
        text
        if not text.startswith(("toset(", "setsubtract(", "local.noted"))
        else f"{{for item in {text} : item => 0}}"
    )


def conditions(kind: str, name: str) -> list[str]:
    """Return the expressions of a resource's preconditions."""
    [body] = [block[kind][name] for block in blocks("resource") if name in block.get(kind, {})]
    return [expression(each["condition"]) for each in body["lifecycle"][0]["precondition"]]


def as_answered(dashboard: dict[str, Any]) -> dict[str, Any]:
    """Return a dashboard as the API answers it. Raises ParseError for a field or a value of an enum that it has not.

    Zeros and empty lists are left out of the answer: written, each would be a change in every plan. The lines of a
    chart get the left axis if they name none; nothing else is added to a chart (recorded in Google's
    k8s-config-connector).
    """
    found: dict[str, Any] = MessageToDict(ParseDict(dashboard, Dashboard.pb()()))
    for chart in attributes(found, "xyChart"):
        for line in chart["dataSets"]:
            line.setdefault("targetAxis", "Y1")
    return found
