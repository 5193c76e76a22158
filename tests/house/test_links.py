"""Every page can be walked: links, anchors and paths lead somewhere, and the first page is short."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.house.test_house import ROOT

MOST_WORDS = 900
"""Of the README: what a stranger reads before they decide to go on."""
FOLDERS = ("shared", "functions", "relay", "infra", "tests", "docs", "examples")
LINK = re.compile(r"\[[^\]]*\]\(([^()\s]+)\)")
PATH = re.compile(rf"`((?:{'|'.join(FOLDERS)})/[\w./-]+)`")
MADE_BY_OPERATORS = {"infra/clusters/PROJECT/CLUSTER.yaml", "infra/terraform/terraform.tfvars"}
"""Named as places, and absent from the sources."""


def pages() -> list[str]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return sorted(name for name in listed if (ROOT / name).is_file())


@cache
def without_blocks(page: Path) -> str:
    """Return a page without its code blocks: what stands in them is no link and no heading."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"^ {4}.*$", "", text, flags=re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives the headings of a page."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ +(.+?) *$", without_blocks(page), re.MULTILINE):
        plain = LINK.sub(lambda link: link[0][1:].partition("]")[0], heading)
        name = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        repeated = next(number for number in range(len(found) + 1) if _numbered(name, number) not in found)
        found.add(_numbered(name, repeated))
    return found


def _numbered(name: str, number: int) -> str:
    return f"{name}-{number}" if number else name


def broken(page: Path, link: str) -> str | None:
    """Return what is wrong with a relative link of a page."""
    where, _, anchor = link.partition("#")
    target = (page.parent / where).resolve() if where else page
    if not target.is_relative_to(ROOT) or not target.exists():
        return f"{link}: there is no such file"
    if anchor and anchor not in anchors(target):
        return f"{link}: the page has the headings {sorted(anchors(target))}"
    return None


@pytest.mark.parametrize("name", pages())
def test_every_relative_link_and_anchor_resolves(name: str) -> None:
    page = ROOT / name
    without_code = re.sub(r"`[^`\n]*`", "", without_blocks(page))
    links = [link for link in LINK.findall(without_code) if "://" not in link]
    assert [problem for link in links if (problem := broken(page, link))] == []


@pytest.mark.parametrize("name", pages())
def test_every_path_in_a_page_exists(name: str) -> None:
    named = {path for path in PATH.findall((ROOT / name).read_text()) if not (ROOT / path).exists()}
    assert named <= MADE_BY_OPERATORS


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().split()) <= MOST_WORDS


@pytest.mark.parametrize("name", [name for name in pages() if name.startswith("docs/") and name.count("/") == 1])
def test_the_readme_leads_to_every_page_of_docs(name: str) -> None:
    assert f"({name}" in (ROOT / "README.md").read_text()


def test_every_target_that_a_page_names_exists() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    texts = [(ROOT / name).read_text() for name in pages() if "/adr/" not in name]
    named = {target for text in texts for target in re.findall(r"(?:`|^ {4})make (\w+)", text, re.MULTILINE)}
    assert {"demo", "test"} <= named <= targets


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    assert broken(ROOT / "README.md", "docs/nowhere.md") is not None
    assert broken(ROOT / "README.md", "docs/architecture.md#nowhere") is not None
    assert broken(ROOT / "README.md", f"../{tmp_path.name}") is not None


def test_a_repeated_heading_has_a_number_in_its_anchor(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# `slices`, and more\n\n## Added\n\n## Added\n\n    # no heading\n")
    assert anchors(page) == {"slices-and-more", "added", "added-1"}
