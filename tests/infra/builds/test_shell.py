"""Every shell script, those of the builds' steps too, as ShellCheck reads it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.infra.sources import (
    DESTROY_STEPS,
    DESTROY_TRAINING,
    DESTROY_TRITON,
    IMAGES_STEPS,
    PROVISION_TRAINING,
    PROVISION_TRITON,
    ROOT,
    STEPS,
)

ENVIRONMENTS = {
    "provision training": PROVISION_TRAINING,
    "destroy training": DESTROY_TRAINING,
    "provision triton": PROVISION_TRITON,
    "destroy triton": DESTROY_TRITON,
}
SCRIPTS = {
    **{f"deploy {name}": step["script"] for name, step in STEPS.items()},
    **{f"destroy {name}": step["script"] for name, step in DESTROY_STEPS.items()},
    **{f"images {name}": step["script"] for name, step in IMAGES_STEPS.items()},
    **{f"{name} {step['id']}": step["script"] for name, build in ENVIRONMENTS.items() for step in build["steps"]},
    **{
        str(path.relative_to(ROOT)): path.read_text()
        for top in ("infra", "shared")
        for path in (ROOT / top).rglob("*.sh")
    },
    ".ci/run": (ROOT / ".ci" / "run").read_text(),
}


def complaints(script: str) -> str:
    """Return what ShellCheck says of a script, as nothing if it is clean."""
    command = [str(Path(sys.executable).with_name("shellcheck")), "-"]
    return subprocess.run(command, input=script, capture_output=True, text=True, check=False).stdout


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_clean(name: str) -> None:
    assert complaints(SCRIPTS[name]) == ""


def test_a_script_that_is_not_clean_is_found() -> None:
    assert "SC2086" in complaints("#!/usr/bin/env bash\nrm -r $1\n")
