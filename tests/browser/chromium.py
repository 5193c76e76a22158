"""A headless Chromium, driven over a pipe in the DevTools protocol (chromedevtools.github.io/devtools-protocol).

`--remote-debugging-pipe`: commands come in by descriptor 3, answers and events go out by 4, JSON ended by NUL. No
port, no driver, no library; the browser ends when the pipe does.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tpu_standins.patience import PATIENCE_SECONDS

REMEDY = "The browser tests need Chromium on the PATH: apt-get install --no-install-recommends chromium"
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
# The browser expects its pipe at descriptors 3 and 4: both are copied to 10 and above first, so that neither is lost.
AT_3_AND_4 = """
import fcntl, os, sys

ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
for end, place in zip(ends, (3, 4)):
    os.dup2(end, place)
os.execv(sys.argv[3], sys.argv[3:])
"""

Json = dict[str, Any]


class PageError(Exception):
    """The browser refused a command, or a script of a test threw."""


@dataclass
class Pipe:
    """Our two ends of the pipe: commands are written to one, messages are read from the other, with a deadline."""

    out: int
    into: int
    _rest: bytes = b""

    def send(self, message: Json) -> None:
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data) :]

    def read(self, deadline: float) -> Json:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self.into], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError("the browser does not answer")
            more = os.read(self.into, 1 << 20)
            if not more:
                raise PageError("the browser has ended")
            self._rest += more
        line, self._rest = self._rest.split(b"\0", 1)
        message: Json = json.loads(line)
        return message


@dataclass
class Browser:
    """One tab. `complaints`: console errors, warnings and exceptions; `requests`: URLs requested from any network."""

    pipe: Pipe
    session: str | None = None
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    _number: int = 0

    def call(self, method: str, **parameters: Any) -> Json:
        self._number += 1
        message: Json = {"id": self._number, "method": method, "params": parameters}
        self.pipe.send({**message, "sessionId": self.session} if self.session else message)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            answer = self.pipe.read(deadline)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise PageError(f"{method}: {answer['error']['message']}")
                result: Json = answer["result"]
                return result
            self._record(answer)

    def open_tab(self) -> None:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def open(self, path: Path, *, width: int = 1200, dark: bool = False, touch: bool = False) -> None:
        """Open a file at this width in CSS pixels and wait until it is loaded.

        The page before is left first: what it still says is its own.
        """
        self.call("Page.navigate", url="about:blank")
        self.wait_for("location.href === 'about:blank' && document.readyState === 'complete'")
        self.complaints.clear()
        self.requests.clear()
        self.prefers(dark=dark)
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=touch)
        self.call("Emulation.setTouchEmulationEnabled", enabled=touch)
        self.call("Page.navigate", url=path.as_uri())
        self.wait_for(f"location.href === {json.dumps(path.as_uri())} && document.readyState === 'complete'")

    def prefers(self, *, dark: bool) -> None:
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media="", features=[scheme])

    def get(self, expression: str) -> Any:
        """Return the value of an expression on the page; of a promise, its result."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise PageError(answer["exceptionDetails"]["exception"]["description"])
        return answer["result"].get("value")

    def wait_for(self, expression: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        frame = "new Promise(after => setTimeout(after, 20))"
        while not self.get(f"Boolean({expression})"):
            if time.monotonic() > deadline:
                raise TimeoutError(f"it never came to be that {expression}; {self.complaints}")
            self.get(frame)

    def wait_for_complaint(self, text: str) -> None:
        """Read what the browser tells until it complains of this: that comes when it likes."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not any(text in complaint for complaint in self.complaints):
            self._record(self.pipe.read(deadline))

    def press(self, key: str) -> None:
        code = {"Tab": 9, "Enter": 13}[key]
        text = {"Enter": "\r"}.get(key, "")
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, text=text)

    def point(self, x: float, y: float) -> None:
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def _record(self, event: Json) -> None:
        about = event.get("params", {})
        method = event.get("method")
        if method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(about["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and about["type"] in {"error", "warning", "assert"}:
            self.complaints.append(json.dumps(about["args"]))
        elif method == "Log.entryAdded" and about["entry"]["level"] in {"error", "warning"}:
            self.complaints.append(about["entry"]["text"])
        elif method in {"Network.requestWillBeSent", "Network.webSocketCreated"}:
            self.requests.append(about.get("request", about)["url"])


@contextmanager
def chromium(profile: Path, log: Path) -> Iterator[Browser]:
    """Start the browser with an empty profile; on exit end it and every process that it started."""
    program = shutil.which("chromium")
    if program is None:
        pytest.fail(REMEDY, pytrace=False)
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    begin = (sys.executable, "-c", AT_3_AND_4, str(theirs_in), str(theirs_out))
    command = ("setpriv", "--pdeathsig", "TERM", *begin, program, *FLAGS, f"--user-data-dir={profile}")
    environment = {"HOME": str(log.parent), "PATH": os.environ["PATH"]}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            env=environment,
            pass_fds=(theirs_in, theirs_out),
            start_new_session=True,
            stdout=output,
            stderr=output,
        )
    os.close(theirs_in)
    os.close(theirs_out)
    try:
        browser = Browser(Pipe(ours_out, ours_in))
        browser.open_tab()
        yield browser
    finally:
        os.close(ours_out)
        os.close(ours_in)
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Terminate the browser, then kill every process that it started."""
    process.terminate()
    descriptor = os.pidfd_open(process.pid)
    select.select([descriptor], [], [], PATIENCE_SECONDS)
    os.close(descriptor)
    # Not waited for yet: its process group cannot have been reused.
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
