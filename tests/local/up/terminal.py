"""A running stack, and a second terminal to control it from."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from infra.local.plan import REPOSITORY
from infra.local.up.note import Note
from tpu_standins.clients.api import Api
from tpu_standins.clients.errors import ApiError
from tpu_standins.clients.objects import Object
from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.testing.leftovers import running_in
from tpu_standins.testing.waiting import until


@dataclass
class Terminal:
    """A second terminal beside a running stack. What is waited for is read without starting a program for each look."""

    folder: Path
    process: subprocess.Popen[bytes]

    def local(self, *verb: str) -> str:
        """Run a command against the stack; return its output, or its error output if it was refused."""
        command = [sys.executable, "-m", "infra.local", "--state", str(self.folder), *verb]
        done = subprocess.run(
            command, cwd=REPOSITORY, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
        )
        assert done.returncode in {0, 1}, done.stderr
        return done.stdout or done.stderr

    def kubectl(self, *arguments: str) -> str:
        command = ["kubectl", f"--cache-dir={self.folder / 'kubectl'}", *arguments]
        environment = {**os.environ, "KUBECONFIG": str(self.folder / "kubeconfig")}
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True
        )
        return done.stdout

    @property
    def out(self) -> str:
        """What the stack printed."""
        return (self.folder / "out").read_text()

    def statuses(self) -> dict[str, str]:
        """Return the status of each part."""
        with urlopen(Note.read(self.folder).control, timeout=PATIENCE_SECONDS) as answer:
            return dict(json.load(answer)["parts"])

    def logged(self, part: str) -> str:
        """Return the log of a part, and that of the one before it if it died."""
        logs = self.folder / "logs"
        return "".join(each.read_text(errors="replace") for each in sorted(logs.glob(f"{part}.log*")))

    def events(self) -> list[Object]:
        """Return the Events; none as long as the API server does not answer."""
        with contextlib.closing(Api.of(self.folder / "kubeconfig")) as api:
            try:
                return list(api.list("events")["items"])
            except ApiError:
                return []

    def until(self, look: Callable[[], Any], what: str) -> None:
        """Wait until something is there, as long as the stack runs."""

        def found() -> Any:
            assert self.process.poll() is None, f"the stack ended: {self.out}"
            return look()

        until(found, lambda: f"{what}; {self.out}")

    def until_told(self, of: str, words: str) -> None:
        """Wait for an Event whose message has these words, a pattern, of an object whose name matches."""

        def told() -> bool:
            events = (each for each in self.events() if re.fullmatch(of, each["involvedObject"]["name"]))
            return any(re.search(words, each["message"]) for each in events)

        self.until(told, f"an Event of {of}: {words}")

    def until_logged(self, part: str, trace: str, *events: str) -> None:
        """Wait until a part has logged these events under a trace."""
        self.until(lambda: self.under(part, trace).issuperset(events), f"{part} to log {events}")

    def under(self, part: str, trace: str) -> set[str]:
        """Return the events that a part logged under a trace."""
        whole = self.logged(part).rpartition("\n")[0]
        return {json.loads(line)["event"] for line in whole.splitlines() if trace in line and line.startswith("{")}

    def parts_under(self, trace: str) -> set[str]:
        """Return the parts that logged anything under a trace."""
        parts = {log.name.partition(".")[0] for log in (self.folder / "logs").iterdir()}
        return {part for part in parts if trace in self.logged(part)}

    def times_restarted(self, part: str) -> int:
        return self.out.count(f"{part} is running again")

    def until_restarted(self, part: str, before: int) -> None:
        """Wait until a part was started again once more than so many times."""
        self.until(lambda: self.times_restarted(part) > before, f"another {part}")

    def until_all_run(self) -> None:
        """Wait until every part runs."""
        self.until(lambda: all(each.startswith("running") for each in self.statuses().values()), "all parts")


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
        terminal.until(lambda: "Press Ctrl-C to stop the stack." in terminal.out, "the stack")
        yield terminal
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_SECONDS) == 130
        assert "\nStopping all processes ...\n" in terminal.out
        assert terminal.out.endswith("All processes were stopped.\n")
        assert "Traceback" not in terminal.out
        assert running_in(folder) == []
        assert not (folder / "stack.json").exists()
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process.wait()
