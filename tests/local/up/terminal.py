"""A running stack, and a second terminal to control it from."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from infra.local.patience import PATIENCE_SECONDS
from tests.local.stack.leftovers import REPOSITORY, running_in


@dataclass
class Terminal:
    """A second terminal beside a running stack."""

    folder: Path
    process: subprocess.Popen[bytes]

    def local(self, *verb: str) -> str:
        """Run a command against the stack; return its output, or its error output if it was refused."""
        command = [sys.executable, "-m", "infra.local", "--state", str(self.folder), *verb]
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode in {0, 1}, done.stderr
        return done.stdout or done.stderr

    def kubectl(self, *arguments: str) -> str:
        command = ["kubectl", f"--cache-dir={self.folder / 'kubectl'}", *arguments]
        environment = {**os.environ, "KUBECONFIG": str(self.folder / "kubeconfig")}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
        return done.stdout

    def until(self, says: Callable[[], str], words: str) -> str:
        """Wait until the output contains these words; return the whole output."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while words not in (said := says()):
            assert self.process.poll() is None, "the stack ended"
            assert time.monotonic() < deadline, f"waited for {words!r}; last: {said}"
            time.sleep(0.2)
        return said


@contextlib.contextmanager
def stack_up(folder: Path) -> Iterator[Terminal]:
    """Run a stack for the duration of the block; then send Ctrl-C and check that nothing of it is left."""
    with (folder / "out").open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "infra.local", "--state", str(folder), "up", "--embedded"],
            cwd=REPOSITORY,
            env={**os.environ, "TMPDIR": str(folder)},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        terminal = Terminal(folder, process)
        terminal.until((folder / "out").read_text, "Press Ctrl-C to stop the stack.")
        yield terminal
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=120) == 130
        assert running_in(folder) == []
        assert not (folder / "stack.json").exists()
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process.wait()
