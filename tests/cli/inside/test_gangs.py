"""`slices gangs open`: pods are let go by a kubectl that answers what it is told to."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.stage import Stage
from tpu_slices.domain.model.gangs import GANG

Says = Callable[..., None]


def pod(name: str, *gates: str, **labels: str) -> dict[str, Any]:
    job = {"kind": "Job", "name": "alone", "controller": True}
    metadata = {"namespace": "research", "name": name, "uid": f"uid-{name}", "labels": {}, "ownerReferences": [job]}
    for key, value in labels.items():
        metadata["labels"] = {f"{key}.sigs.k8s.io/{'jobset-name' if key == 'jobset' else 'name'}": value}
    return {"metadata": metadata, "spec": {"schedulingGates": [{"name": each} for each in gates]}}


PODS = (
    pod("llama-0", GANG, jobset="llama"),
    pod("llama-1", GANG, "other", jobset="llama"),
    pod("serve-0", GANG, leaderworkerset="serve"),
    pod("alone-0", GANG),
    pod("foreign", "other"),
    pod("free"),
)


@pytest.fixture
def kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Says:
    """Return what says which pods there are, and in which words a patch of one fails."""
    program = tmp_path / "kubectl"
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    def says(*pods: dict[str, Any], refused: str = "", error: str = "") -> None:
        (tmp_path / "pods").write_text(json.dumps({"items": pods}))
        (tmp_path / "error").write_text(error)
        patched = f'case "$*" in *"patch pod {refused} "*) cat error >&2; exit 1;; esac' if refused else ""
        program.write_text(
            f'#!/bin/sh\ncd {tmp_path}\necho "$*" >> asked\n{patched}\ncase "$*" in *"get pods"*) cat pods;; esac\n'
        )
        program.chmod(0o755)

    says(*PODS)
    return says


def patched(tmp_path: Path) -> list[str]:
    lines = (tmp_path / "asked").read_text().splitlines()
    return sorted(line.partition("patch pod ")[2].partition(" ")[0] for line in lines if "patch pod" in line)


@pytest.mark.usefixtures("kubectl")
def test_all_pods_that_the_gate_holds_are_opened_and_no_other(tmp_path: Path) -> None:
    shown = Stage().output_of("gangs", "open", "--all", "--yes")
    assert patched(tmp_path) == ["alone-0", "llama-0", "llama-1", "serve-0"]
    for each in ("JobSet llama in research: 2 pods held", "LeaderWorkerSet serve in research: 1 pod held"):
        assert each in shown
    assert "Job alone in research: 1 pod held" in shown
    assert "research/llama-0: opened" in shown
    assert "Opened: 4 pods. Pods that are made from now on are held again" in shown


@pytest.mark.usefixtures("kubectl")
def test_the_pods_of_one_workload_are_opened_alone(tmp_path: Path) -> None:
    Stage().output_of("gangs", "open", "research/llama", "--context", "prod", "--yes")
    assert patched(tmp_path) == ["llama-0", "llama-1"]
    assert all(line.startswith("--context prod ") for line in (tmp_path / "asked").read_text().splitlines())


@pytest.mark.usefixtures("kubectl")
def test_a_patch_takes_this_gate_off_the_very_pod_and_changes_nothing_else(tmp_path: Path) -> None:
    Stage().output_of("gangs", "open", "research/alone", "--yes")
    (line,) = (line for line in (tmp_path / "asked").read_text().splitlines() if "patch pod" in line)
    assert "--namespace research --type strategic" in line
    assert json.loads(line.partition("--patch ")[2]) == {
        "metadata": {"uid": "uid-alone-0"},
        "spec": {"schedulingGates": [{"$patch": "delete", "name": GANG}]},
    }


@pytest.mark.usefixtures("kubectl")
def test_without_a_word_of_the_user_nothing_is_opened(tmp_path: Path) -> None:
    assert Stage().slices("gangs", "open", "--all").exit_code == 2
    assert patched(tmp_path) == []


@pytest.mark.parametrize("words", [(), ("llama",), ("--all", "research/llama")])
def test_which_pods_are_meant_has_to_be_said(words: tuple[str, ...]) -> None:
    assert Stage().slices("gangs", "open", *words, "--yes").exit_code == 2


def test_that_nothing_is_held_is_said(kubectl: Says) -> None:
    kubectl(pod("free"))
    assert "No pod is held" in Stage().output_of("gangs", "open", "--all")


def test_what_could_not_be_opened_is_told_and_the_others_are(kubectl: Says, tmp_path: Path) -> None:
    kubectl(*PODS, refused="llama-0", error="Error from server (Forbidden): pods is forbidden")
    result = Stage().slices("gangs", "open", "--all", "--yes")
    assert result.exit_code == 1
    assert len(patched(tmp_path)) == 4
    assert "research/llama-0: Error from server (Forbidden): pods is forbidden" in result.output
    assert "Opened: 3 pods." in result.output
    assert "1 pod could not be opened: run this again" in result.output


def test_a_pod_that_is_gone_by_now_is_no_trouble(kubectl: Says) -> None:
    kubectl(*PODS, refused="llama-0", error='Error from server (NotFound): pods "llama-0" not found')
    assert "Opened: 4 pods." in Stage().output_of("gangs", "open", "--all", "--yes")
