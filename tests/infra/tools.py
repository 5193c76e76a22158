"""Stand-ins for the programs that the build calls: they record how they are called, and answer as the test says."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

RECORDER = """#!/usr/bin/env bash
name="$(basename "$0")"
echo "$name $*" >> "{calls}"
while IFS=$'\\t' read -r pattern code answer; do
  if [[ "$name $* $KUBECONFIG" == *$pattern* ]]; then
    printf '%b' "$answer"
    exit "$code"
  fi
done < "{answers}"
"""


@dataclass(frozen=True)
class Tools:
    """Programs in a folder of their own. What is not answered succeeds, and says nothing."""

    folder: Path

    @property
    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().splitlines()

    def answer(self, pattern: str, answer: str = "", code: int = 0) -> None:
        """Let a call that has the pattern in it, or in its KUBECONFIG, say this; the first that fits counts."""
        with (self.folder / "answers").open("a") as file:
            file.write(f"{pattern}\t{code}\t{answer}\n")

    def fail(self, pattern: str) -> None:
        self.answer(pattern, code=1)

    def run(self, script: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
        command = ["setpriv", "--pdeathsig", "TERM", "bash", "-c", script]
        variables: Mapping[str, str] = {"PATH": f"{self.folder}:{os.environ['PATH']}", "KUBECONFIG": "", **environment}
        return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)


def tools(folder: Path, *names: str) -> Tools:
    """Write the programs."""
    folder.mkdir()
    for each in ("calls", "answers"):
        (folder / each).touch()
    for name in names:
        (folder / name).write_text(RECORDER.format(calls=folder / "calls", answers=folder / "answers"))
        (folder / name).chmod(0o755)
    return Tools(folder)
