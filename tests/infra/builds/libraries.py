"""Libraries of a lock, installed as a build installs them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tpu_standins.patience import PATIENCE_SECONDS


def install(lock: Path, site: Path, *options: str) -> None:
    """Install what a lock has, and nothing else, for this Python."""
    command = [str(Path(sys.executable).with_name("uv")), "pip", "install", "--quiet", "--require-hashes", *options]
    command += ["--only-binary", ":all:", "--python", sys.executable, "--target", str(site), "--requirement", str(lock)]
    environment = {**os.environ, "UV_HTTP_TIMEOUT": f"{PATIENCE_SECONDS:.0f}"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{lock} cannot be installed: {done.stderr}"
