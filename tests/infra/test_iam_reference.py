"""docs/iam.md has a row for each grant of Terraform and of infra/bootstrap.sh, and none besides.

Terraform itself evaluates who is granted what on what, for the clusters of `evaluation.CLUSTERS` and a self-managed
one. What is known only once it exists is replaced by its name.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from infra.preflight.accounts import NODE_ROLE, READER
from infra.preflight.project import CLUSTER_ROLES, ROLES
from tests.infra.evaluation import CLUSTERS, PROJECT, evaluated, expression, prepared, write_self_managed
from tests.infra.sources import ROOT, blocks, local, resource

PAGE = (ROOT / "docs" / "iam.md").read_text()
ELSEWHERE = "CLUSTER-PROJECT"
SELF_MANAGED = "own"
REFERENCE = re.compile(
    r"(?P<kind>google_\w+|local)\.(?P<name>\w+)(?:\[(?P<key>[^\]]*)\])?(?:\.(?:member|id|name|writer_identity))?"
)
TARGETS = ("topic", "subscription", "bucket", "repository", "service_account_id", "name", "project")
"""What a grant is on, the most special first."""
NAMED_BY_KEY = {
    "google_project_service_identity": "service-NUMBER@gcp-sa-{}.iam.gserviceaccount.com",
    "google_project_iam_custom_role": "{}",
}
NAMES = ("account_id", "repository_id", "name")
needs_terraform = pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not installed")


class Grant(NamedTuple):
    who: str
    role: str
    on: str
    conditional: bool = False


class Row(NamedTuple):
    who: list[str]
    role: str
    on: list[str]
    conditional: bool
    uses: set[str]

    def grants(self, functions: list[str]) -> Iterator[Grant]:
        """Yield the grants of the row; FUNCTION stands for each function."""
        for function in functions if "FUNCTION" in "".join([*self.who, *self.on]) else [""]:
            for who in self.who:
                for on in self.on:
                    names = [each.replace("FUNCTION", function) for each in (who, self.role, on)]
                    yield Grant(names[0], names[1], names[2], self.conditional)


@cache
def rows(heading: str) -> list[Row]:
    """Return the rows of the table below a heading of the page."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line.strip("|").split(" | ") for line in section.splitlines() if line.startswith("| `")]
    found = []
    for who, role, on, uses, _why in lines:
        names = [re.findall(r"`([^`]+)`", cell) for cell in (who, role, on, uses)]
        found.append(Row(names[0], names[1][0], names[2], "condition" in on, set(names[3])))
    assert found, heading
    return found


def members() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each resource that grants something, with what is written in it."""
    for block in blocks("resource"):
        for kind, named in block.items():
            if kind.endswith("_iam_member"):
                yield from ((kind, body) for body in named.values())


def known(text: str) -> str:
    """Return a template with names for what exists only after an apply, and with key and value for `each`."""
    text = text.replace("each.value.project", f'"{ELSEWHERE}"')
    text = REFERENCE.sub(_name, text)
    return '"' + text.replace("each.key", "key").replace("each.value", "value") + '"'


def _name(found: re.Match[str]) -> str:
    kind, name, key = found["kind"], found["name"], found["key"] or ""
    if kind == "local":
        return f'"relay-${{{key}}}"' if name == "relays" else found[0]
    if kind in NAMED_BY_KEY:
        return '"' + NAMED_BY_KEY[kind].format(f"${{{key}}}") + '"'
    body = resource(kind, name)
    written = str(next(body[each] for each in NAMES if each in body))
    return '"' + written.replace("each.key", key) + '"'


def granted(folder: Path) -> set[Grant]:
    """Return what Terraform grants, with PROJECT and CLUSTER for the names of those evaluated."""
    queries = {}
    for number, (_, body) in enumerate(members()):
        [target] = [name for name in TARGETS if name in body][:1]
        each = expression(body.get("for_each", '${["only"]}'))
        texts = ", ".join(known(body[name]) for name in ("member", "role", target))
        conditional = str("condition" in body).lower()
        queries[f"grant{number}"] = f"[for key, value in {each} : [{texts}, {conditional}]]"
    roles = role_ids(folder)
    return {
        Grant(generic(who), generic(roles.get(role, role)), generic(on), conditional)
        for found in evaluated(folder, queries).values()
        for who, role, on, conditional in found
    }


def role_ids(folder: Path) -> dict[str, str]:
    """Return the ids of the custom roles, by their key; also by that with the project of a cluster in general."""
    queries = {
        kind: f"{{for key, value in local.{kind}_roles : key => {text}}}"
        for kind in ("gke", "compute")
        for text in [_role_id(kind)]
    }
    found: dict[str, str] = {key: role for ids in evaluated(folder, queries).values() for key, role in ids.items()}
    return found | {f"{key.rpartition('/')[0]}/{ELSEWHERE}": role for key, role in found.items()}


def _role_id(kind: str) -> str:
    written: str = resource("google_project_iam_custom_role", kind)["role_id"]
    return expression(written).replace("each.value", "value")


def generic(name: str) -> str:
    name = re.sub(
        rf"\b(?:{'|'.join([*CLUSTERS, SELF_MANAGED])})\b", "CLUSTER", name.removeprefix("projects/-/serviceAccounts/")
    )
    return name.replace(PROJECT, "PROJECT").replace(PROJECT.replace("-", "_"), "PROJECT")


def custom_permissions() -> dict[str, set[str]]:
    functions: Mapping[str, Mapping[str, Any]] = local("functions")
    return {
        f"tpuSlice{name.title()}{scope.title()}_PROJECT": set(permissions)
        for name, function in functions.items()
        for scope, permissions in {**function["gke"], **function["compute"]}.items()
    }


@cache
def bootstrap() -> list[list[str]]:
    """Return the commands of infra/bootstrap.sh for a project, and another one that has clusters."""
    where = ("--project", "PROJECT", "--region", "us-central1", "--cluster-project", ELSEWHERE)
    command = ["bash", str(ROOT / "infra" / "bootstrap.sh"), *where, "--dry-run"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [shlex.split(line) for line in printed.partition("\n\n")[0].splitlines()]


def option(command: list[str], name: str) -> str:
    return command[command.index(name) + 1]


@pytest.mark.emulators
@pytest.mark.enable_socket
@needs_terraform
def test_the_page_has_every_grant_of_terraform_and_none_besides(tmp_path: Path) -> None:
    written = {grant for row in rows("Made by Terraform") for grant in row.grants(list(local("functions")))}
    folder = prepared(tmp_path)
    write_self_managed(folder, SELF_MANAGED)
    assert granted(folder) == written


def test_the_page_has_the_permissions_of_every_custom_role() -> None:
    written = {row.role: row.uses for row in rows("Made by Terraform") if not row.role.startswith("roles/")}
    assert written == custom_permissions()


def test_the_page_has_every_grant_of_bootstrap_and_none_besides() -> None:
    made = set()
    for command in bootstrap():
        if "add-iam-policy-binding" in command:
            who = option(command, "--member").partition(":")[2].partition("@")[0]
            on = command[command.index("add-iam-policy-binding") + 1].partition("@")[0]
            role = option(command, "--role").rpartition("projects/CLUSTER-PROJECT/roles/")[2]
            made.add(Grant(who, role, on))
    assert made == {grant for row in rows("The build's account") for grant in row.grants([])}


def test_the_page_has_the_permissions_by_which_preflight_knows_the_builds_account() -> None:
    [custom] = [option(command, "--permissions").split(",") for command in bootstrap() if "--permissions" in command]
    needed = {("PROJECT", role): set(permissions) for role, permissions in ROLES.items()}
    needed |= {(ELSEWHERE, role): set(permissions) for role, permissions in CLUSTER_ROLES.items()}
    needed[ELSEWHERE, "tpuSliceDeployer_PROJECT"] = set(custom)
    for row in rows("The build's account"):
        for on in row.on:
            assert needed.get((on, row.role), set()) <= row.uses, (on, row.role)


def test_the_page_has_the_roles_that_preflight_asks_for_nodes() -> None:
    assert {row.role for row in rows("Granted by you") if "nodes" in row.who[0]} == {NODE_ROLE, READER}
