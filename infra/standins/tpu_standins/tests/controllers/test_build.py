"""Others' controllers, built with a Go and a kubectl that make nothing of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tpu_standins.controllers.build import provide
from tpu_standins.controllers.catalogue import (
    CONTROLLERS,
    MANIFESTS,
    PROGRAM,
    Controller,
    built,
    cache_of,
)
from tpu_standins.kubernetes.versions import numbers

pytestmark = pytest.mark.emulators

GO = """#!/bin/sh
case $1 in
env) echo go1.26.0;;
list) for last; do :; done; echo {module};;
build) echo built >> {log}; {then}
    for last; do case $before in -o) out=$last;; esac; before=$last; done; touch $out/controller;;
esac
"""
KUBECTL = """#!/bin/sh
[ "$2" = {module}/config/default ] && printf 'kind: Namespace\\n---\\nkind: ServiceAccount\\n'
"""


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An environment with both programs, in which nothing is built."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    a_program(tmp_path, "kubectl", KUBECTL)
    a_program(tmp_path, "go", GO)
    return {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": "/"}


def a_program(tmp_path: Path, name: str, text: str, then: str = "") -> None:
    (tmp_path / "bin").mkdir(exist_ok=True)
    program = tmp_path / "bin" / name
    program.write_text(text.format(module=tmp_path / "module", log=tmp_path / "log", then=then))
    program.chmod(0o755)


def test_each_is_built_once_with_the_manifests_of_its_own_module(environment: dict[str, str], tmp_path: Path) -> None:
    told: list[str] = []
    assert [provide(environment, told.append) for _ in range(2)] == [0, 0]
    for controller in CONTROLLERS:
        folder = built(controller, environment)
        assert {each.name for each in folder.iterdir()} == {PROGRAM, MANIFESTS}
        assert json.loads((folder / MANIFESTS).read_text()) == [{"kind": "Namespace"}, {"kind": "ServiceAccount"}]
        assert told.count(f"{controller}: {folder}, built here") == 2
    assert (tmp_path / "log").read_text().count("built") == len(CONTROLLERS)


def test_one_that_cannot_be_built_is_told_in_a_line_and_leaves_nothing(
    environment: dict[str, str], tmp_path: Path
) -> None:
    a_program(tmp_path, "go", GO, then="echo 'no space left' >&2; exit 1")
    told: list[str] = []
    assert provide(environment, told.append) == 1
    assert told[-1].startswith("NOT ALL CONTROLLERS: tests of them are skipped, with CI=true they fail. ")
    assert told[-1].endswith("no space left")
    assert {each.name for each in cache_of(environment).iterdir()} == {"lock"}


def test_manifests_that_cannot_be_put_together_are_told_in_a_line(environment: dict[str, str], tmp_path: Path) -> None:
    a_program(tmp_path, "kubectl", "#!/bin/sh\necho 'no such file' >&2; exit 1\n")
    told: list[str] = []
    assert provide(environment, told.append) == 1
    assert told[-1].endswith("kubectl kustomize failed: no such file")


@pytest.mark.parametrize("controller", CONTROLLERS, ids=lambda each: each.name)
def test_a_folder_that_is_named_by_a_version_requires_it(controller: Controller) -> None:
    _, _, named = controller.name.partition("-")
    assert not named or numbers(controller.version)[:2] == numbers(f"v{named}")[:2]
