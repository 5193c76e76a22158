"""The commands in the sentences of the runbook: gcloud, and `slices`, understand each.

Who is called at night does what they say. Those of its blocks are in test_documented_commands.py.
"""

from __future__ import annotations

import re
import shlex

import click
import pytest

from tests.infra.gcloud.conftest import Gcloud
from tests.infra.loopback import NOT_FOUND, refusal, serving
from tests.infra.sources import ROOT
from tpu_slices_cli.app import main as slices

WRONG_USAGE = 2
ELSEWHERE = {"gcloud builds submit", "slices --project shop-project"}
"""Tried by test_build_submitted.py; an abbreviation, no command."""
PAGE = (ROOT / "docs" / "runbook.md").read_text()
PLACEHOLDERS = {
    "CLUSTER_PROJECT": "other-project",
    "PROJECT": "shop-project",
    "LOCATION": "us-central2",
    "REGION": "us-central1",
    "SUBSCRIPTION": "relay-blue",
    "CLUSTER": "blue",
    "NAME": "blue",
}


def commands(program: str) -> list[str]:
    """Return the commands of running text, with values for what stands in capitals."""
    text = re.sub(rf"\b({'|'.join(PLACEHOLDERS)})\b", lambda found: PLACEHOLDERS[found[0]], PAGE)
    inline = [re.sub(r"\s+", " ", each) for each in re.findall(rf"`({program}\s[^`]+)`", text)]
    return [each for each in dict.fromkeys(inline) if each not in ELSEWHERE]


@pytest.mark.emulators
@pytest.mark.enable_socket
@pytest.mark.parametrize("command", commands("gcloud"))
def test_gcloud_understands_every_command(gcloud: Gcloud, command: str) -> None:
    arguments = shlex.split(re.sub(r"\$\(date .*?\)", "2026-11-23T00:00:00Z", command))
    with serving(lambda _: refusal(NOT_FOUND)) as url:
        ran = gcloud.run(*arguments, url=url, environment={"CLOUDSDK_CORE_PROJECT": "shop-project"})
    assert ran.returncode != WRONG_USAGE, ran.stderr
    assert "refused with 404" in ran.stderr, "it asked Google, or nobody"


@pytest.mark.parametrize("command", commands("slices"))
def test_the_projects_own_command_understands_its_commands(command: str) -> None:
    group = click.Context(slices, info_name="slices")
    arguments = slices.make_parser(group).parse_args(shlex.split(command)[1:])[1]
    name, chosen, rest = slices.resolve_command(group, arguments)
    assert chosen is not None, name
    chosen.make_parser(click.Context(chosen, parent=group)).parse_args(rest)
