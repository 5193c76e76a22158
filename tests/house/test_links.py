"""Every page can be walked: links, anchors and paths lead somewhere, and the first page is short."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from tests.house.sources import ROOT, text, tracked

MOST_WORDS = 900
"""Of the README: what a stranger reads before they decide to go on."""
FOLDERS = ("shared", "functions", "relay", "infra", "tests", "docs", "examples")
LINK = re.compile(r"\[[^\]]*\]\(([^()\s]+)\)")
PATH = re.compile(rf"`((?:{'|'.join(FOLDERS)})/[\w./-]+)`")
MADE_BY_OPERATORS = {"infra/clusters/PROJECT/CLUSTER.yaml", "infra/terraform/terraform.tfvars"}
"""Named as places, and absent from the sources."""


def pages() -> tuple[str, ...]:
    return tracked(".md")


@cache
def without_blocks(page: Path) -> str:
    """Return a page without its code blocks: what stands in them is no link and no heading."""
    fenced = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"^ {4}.*$", "", fenced, flags=re.MULTILINE)


@cache
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


def links(page: Path) -> list[str]:
    """Return the relative links of a page."""
    without_code = re.sub(r"`[^`\n]*`", "", without_blocks(page))
    return [link for link in LINK.findall(without_code) if "://" not in link]


def test_every_relative_link_and_anchor_resolves() -> None:
    found = [(name, broken(ROOT / name, link)) for name in pages() for link in links(ROOT / name)]
    assert len(found) > 200
    assert [each for each in found if each[1]] == []


def test_every_path_in_a_page_exists() -> None:
    named = [(name, path) for name in pages() for path in PATH.findall(text(name))]
    assert len(named) > 200
    assert [each for each in named if not (ROOT / each[1]).exists() and each[1] not in MADE_BY_OPERATORS] == []


def test_the_readme_is_short() -> None:
    assert len(text("README.md").split()) <= MOST_WORDS


def test_the_readme_leads_to_every_page_of_docs() -> None:
    names = [name for name in pages() if name.startswith("docs/") and name.count("/") == 1]
    assert [name for name in names if f"({name}" not in text("README.md")] == []


def test_every_target_that_a_page_names_exists() -> None:
    targets = set(re.findall(r"^(\w+):", text("Makefile"), re.MULTILINE))
    texts = [text(name) for name in pages() if "/adr/" not in name]
    named = {target for each in texts for target in re.findall(r"(?:`|^ {4})make (\w+)", each, re.MULTILINE)}
    assert {"demo", "test"} <= named <= targets


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    assert broken(ROOT / "README.md", "docs/nowhere.md") is not None
    assert broken(ROOT / "README.md", "docs/architecture.md#nowhere") is not None
    assert broken(ROOT / "README.md", f"../{tmp_path.name}") is not None


def test_a_repeated_heading_has_a_number_in_its_anchor(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# `slices`, and more\n\n## Added\n\n## Added\n\n    # no heading\n")
    assert anchors(page) == {"slices-and-more", "added", "added-1"}
