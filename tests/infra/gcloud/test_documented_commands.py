"""The commands in the code blocks of the pages are understood by gcloud, by `slices`, and by the scripts of infra."""

from __future__ import annotations

import importlib
import re
import shlex
from collections.abc import Iterator, Sequence

import click
import pytest

from tests.infra.gcloud.conftest import Gcloud
from tests.infra.sources import ROOT
from tpu_slices_cli.app import main as slices

FOLDERS = (ROOT, ROOT / "docs", ROOT / "infra", ROOT / "infra" / "environments" / "training")
PAGES = [path for folder in FOLDERS for path in sorted(folder.glob("*.md"))]
BLOCK = re.compile(r"^```\w*\n(.*?)^```$|((?:^ {4}[^\n]*\n(?:^\n)*)+)", re.MULTILINE | re.DOTALL)
CHECKED = re.compile(r"(?:^|[|;&] *)(?:gcloud|slices) ")
OUTPUT = re.compile(r"\$\([^()]*\)")
PRINTED = "2026-11-23"
"""What another command prints, as a word of a command: some expect a time."""
OPERATORS = "|;&<>"
ELSEWHERE = "…"
"""The rest of a command is told elsewhere."""
PROJECT = re.compile(r"\b(?:CLUSTER_|OTHER-)?PROJECT\b")
"""gcloud refuses it as the id of a project, which has no capitals."""


READ = {"jwks.json": "/dev/null"}
"""Files that gcloud reads while it parses: a command before it has made them."""


def words(statement: str) -> list[str]:
    """Return the words of a statement, and its operators. Raises ValueError if a quote is open."""
    lexer = shlex.shlex(OUTPUT.sub(PRINTED, statement), posix=True, punctuation_chars=OPERATORS)
    lexer.whitespace_split = True
    return [word for word in lexer if word != ELSEWHERE]


def statements(page: str) -> Iterator[list[str]]:
    """Yield the words of what a shell reads at once, in code blocks: lines go on after a backslash, and in quotes."""
    for fenced, indented in BLOCK.findall(page):
        read = ""
        for line in (fenced or indented).splitlines():
            read += line.strip().removeprefix("$ ")
            if read.endswith("\\"):
                read = read.removesuffix("\\") + " "
                continue
            try:
                yield words(read)
            except ValueError:
                if CHECKED.search(read):
                    read += "\n"
                    continue
            read = ""


def commands(page: str, program: str) -> Iterator[tuple[str, ...]]:
    """Yield the commands of a program in the code blocks of a page, as words."""
    for statement in statements(page):
        command: list[str] = []
        for word in [*statement, ";"]:
            if not set(word) <= set(OPERATORS):
                command.append(word)
                continue
            if command[:1] == [program]:
                yield tuple(command)
            command = []


def documented(program: str) -> list[tuple[str, ...]]:
    return list(dict.fromkeys(each for page in PAGES for each in commands(page.read_text(), program)))


def misunderstood(command: Sequence[str]) -> str:
    """Return why `slices` does not understand a command, or ""."""
    group = click.Context(slices, info_name="slices")
    try:
        rest = slices.make_parser(group).parse_args([*command[1:]])[1]
        name, chosen, rest = slices.resolve_command(group, rest)
        assert chosen is not None, name
        chosen.make_context(name, rest, parent=group)
    except click.UsageError as wrong:
        return wrong.format_message()
    return ""


@pytest.mark.emulators
@pytest.mark.enable_socket
def test_gcloud_understands_every_documented_command(gcloud: Gcloud) -> None:
    shown = [[PROJECT.sub("my-project", READ.get(word, word)) for word in command] for command in documented("gcloud")]
    assert {shlex.join(command): why for command in shown if (why := gcloud.parse(*command))} == {}
    assert ["gcloud", "builds", "submit"] in [command[:3] for command in shown]


@pytest.mark.emulators
@pytest.mark.enable_socket
@pytest.mark.parametrize(
    "command",
    [
        "gcloud builds submit --substitution=_REGION=us-central1 --machine-typ=e2",
        "gcloud container clusters update NAME --location L --enable-dns-acces",
        "gcloud container cluster list",
        "gcloud iam service-accounts create",
    ],
)
def test_a_misspelt_or_incomplete_command_of_gcloud_is_found(gcloud: Gcloud, command: str) -> None:
    assert gcloud.parse(*shlex.split(command)) != ""


@pytest.mark.parametrize("command", documented("slices"), ids=" ".join)
def test_slices_understands_every_documented_command(command: tuple[str, ...]) -> None:
    assert misunderstood(command) == ""


@pytest.mark.parametrize(
    "command", ["slices explian llama", "slices retire blue", "slices plan --file x", "slices hold"]
)
def test_a_misspelt_or_incomplete_command_of_slices_is_found(command: str) -> None:
    assert misunderstood(shlex.split(command)) != ""


@pytest.mark.parametrize("command", documented("python"), ids=" ".join)
def test_a_module_understands_every_documented_command(command: tuple[str, ...]) -> None:
    module = importlib.import_module(f"{command[2]}.__main__")
    module._parser().parse_args(command[3:])  # exits if it does not


@pytest.mark.emulators
@pytest.mark.enable_socket
@pytest.mark.parametrize("command", documented("infra/bootstrap.sh"), ids=" ".join)
def test_bootstrap_understands_every_documented_command(gcloud: Gcloud, command: tuple[str, ...]) -> None:
    region = ["--region", "us-central1"] if "--remove" in command else []  # nothing else goes without it
    plain = [word for word in command if word not in {"--dry-run", "--remove"}]
    ran = gcloud.run(*plain, *region, "--dry-run", url="http://localhost:1", environment={})
    assert (ran.returncode, ran.stderr) == (0, "")


def test_commands_are_found_in_every_form_that_pages_show_them() -> None:
    page = (
        "# Title\n\nText with `gcloud none`.\n\n"
        "    $ gcloud one --a \\\n      --b     # why\n    prints 'this\n    gcloud two && gcloud three\n\n"
        "1. A list\n\n       cat x | gcloud four --json='{\n         \"a\": 1}'\n\n"
        "```bash\ngcloud five --commit=$(git rev-parse HEAD) …\n```\n"
    )
    assert list(commands(page, "gcloud")) == [
        ("gcloud", "one", "--a", "--b"),
        ("gcloud", "two"),
        ("gcloud", "three"),
        ("gcloud", "four", '--json={\n"a": 1}'),
        ("gcloud", "five", f"--commit={PRINTED}"),
    ]
