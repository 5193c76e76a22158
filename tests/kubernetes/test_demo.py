"""The demo, started as people start it where there is a control plane: what it does then, and that it can be ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from infra.local.kubernetes.programs import Programs
from tests.local.stack.leftovers import REPOSITORY, running_in, until

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket, pytest.mark.timeout(120)]


def test_it_runs_on_the_control_plane_and_ctrl_c_in_the_middle_leaves_nothing(
    programs: Programs, tmp_path: Path
) -> None:
    demo = subprocess.Popen(
        [sys.executable, "-m", "infra.local", "--state", str(tmp_path / "state"), "demo"],
        cwd=REPOSITORY,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert demo.stdout
    said = []
    for line in demo.stdout:
        said.append(line)
        if "PROVISIONING" in line:
            break
    demo.send_signal(signal.SIGINT)
    _, errors = demo.communicate()
    assert f"{programs}\n" in said
    assert (demo.returncode, "Traceback" in errors) == (130, False)
    until(lambda: not running_in(tmp_path), "the end of every part")
