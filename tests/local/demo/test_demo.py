"""The demo as people run it: in its own process."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from infra.local.demo.story import story, story_on_compute
from infra.local.plan import REPOSITORY
from tpu_standins.kubernetes.programs import find
from tpu_standins.kubernetes.versions import pinned
from tpu_standins.prerequisites import Tools
from tpu_standins.testing.leftovers import running_in
from tpu_standins.testing.waiting import until

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]


def start(folder: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    """Start the demo. Every process it starts inherits this TMPDIR, by which leftover processes are recognised."""
    return subprocess.Popen(
        [sys.executable, "-m", "infra.local", "--state", str(folder / "state"), "demo", *arguments],
        cwd=REPOSITORY,
        env={**os.environ, "TMPDIR": str(folder), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_every_step_happens_and_nothing_is_left(tools: Tools, tmp_path: Path) -> None:
    assert tools.java.exists()
    said, errors = (demo := start(tmp_path, "--embedded")).communicate()
    assert (demo.returncode, errors) == (0, ""), said
    for step in story():
        assert f"({step.letter}) ✓ {step.title}" in said
    assert "nothing is left" in said
    assert "\x1b" not in said
    assert not running_in(tmp_path)


@pytest.mark.real
def test_in_a_self_managed_cluster_slices_are_groups_of_instances(tools: Tools, tmp_path: Path) -> None:
    assert tools.java.exists()
    said, errors = (demo := start(tmp_path, "--embedded", "--backend", "compute")).communicate()
    assert (demo.returncode, errors) == (0, ""), said
    for step in story_on_compute():
        assert f"({step.letter}) ✓ {step.title}" in said
    assert "nothing is left" in said
    assert re.search(r"declared +2x2x2 +2 +2 +True +Ready ", said), said  # as kubectl shows it
    runs = "Hosts that join by kubeadm run the startup script of their metadata" in said
    assert runs or os.environ.get("CI") != "true"
    assert not running_in(tmp_path)


@pytest.mark.real
def test_it_runs_on_a_control_plane_if_there_is_one_and_ctrl_c_in_the_middle_leaves_no_process(
    tools: Tools, tmp_path: Path
) -> None:
    assert tools.java.exists()
    demo = start(tmp_path)
    assert demo.stdout
    said = []
    for line in demo.stdout:
        said.append(line)
        if "kubectl apply" in line:
            break
    demo.send_signal(signal.SIGINT)
    _, errors = demo.communicate()
    programs = find(os.environ, pinned()).programs
    assert programs is None or f"{programs}\n" in said
    assert "kubectl apply" in said[-1]
    assert (demo.returncode, "Traceback" in errors) == (130, False)
    until(lambda: not running_in(tmp_path), "the end of every part")


def test_without_java_there_is_one_message_with_the_remedy(tools: Tools, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for program in (tools.kubectl, tools.setpriv):
        (programs / program.name).symlink_to(program)
    sdk = next(parent for parent in tools.pubsub_jar.parents if (parent / "platform").is_dir())
    demo = start(tmp_path, "--embedded", PATH=str(programs), CLOUDSDK_ROOT_DIR=str(sdk))
    said, errors = demo.communicate()
    assert (demo.returncode, said) == (2, "")
    assert errors.splitlines() == [
        "The local stack needs programs that are not installed:",
        "  Java: apt-get install default-jre-headless",
    ]
