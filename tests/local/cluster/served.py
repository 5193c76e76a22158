"""A local API server in its own process, and kubectl to access it."""

import os
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kubernetes.config
import orjson

from infra.local.prerequisites import Prerequisite, find

ROOT = Path(__file__).parents[3]
config: Any = kubernetes.config  # untyped, although the package claims to be typed
READY = "listening on "
PROMPTLY = 3.0


def _kubectls() -> list[Path]:
    """Return the oldest and the newest kubectl of the Google Cloud CLI, else the one on the PATH."""
    tools = find(os.environ)
    found, sdk = tools[Prerequisite.KUBECTL], tools[Prerequisite.GCLOUD]
    versions = sorted((sdk / "bin").glob("kubectl.1.*") if sdk else [], key=lambda path: int(path.suffix[1:]))
    ends = dict.fromkeys([versions[0], versions[-1]] if versions else [found or Path("kubectl")])
    return list(ends)


KUBECTLS = _kubectls()


@dataclass(frozen=True, slots=True)
class Said:
    """The output and the exit code of a program."""

    code: int
    out: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    process: subprocess.Popen[str]
    address: str
    kubeconfig: Path
    program: Path = Path("kubectl")

    def kubectl(self, *arguments: str, stdin: Any = None) -> Said:
        """Run kubectl; `stdin` is one object or several."""
        several = {"apiVersion": "v1", "kind": "List", "items": stdin}
        text = "" if stdin is None else orjson.dumps(several if isinstance(stdin, list) else stdin).decode()
        done = subprocess.run(
            self.command(*arguments), input=text, capture_output=True, text=True, timeout=15, check=False
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def json(self, *arguments: str) -> Any:
        """Run kubectl and parse the object that it prints."""
        return orjson.loads(self.kubectl(*arguments, "-o", "json").out)

    def command(self, *arguments: str) -> list[str]:
        cache = self.kubeconfig.parent / f"cache-{self.program.name}"
        return [str(self.program), f"--kubeconfig={self.kubeconfig}", f"--cache-dir={cache}", *arguments]

    def press(self, fault: str, **more: str) -> dict[str, int]:
        """Inject a fault."""
        request = urllib.request.Request(
            f"{self.address}/local/faults", data=orjson.dumps({"fault": fault} | more), method="POST"
        )
        with urllib.request.urlopen(request, timeout=5) as response:
            answer: dict[str, int] = orjson.loads(response.read())
        return answer

    def namespace(self) -> str:
        """Create a new namespace and return its name."""
        name = f"team-{uuid.uuid4().hex[:8]}"
        assert self.kubectl("create", "namespace", name).code == 0
        return name


@contextmanager
def serving(folder: Path, *arguments: str) -> Iterator[Served]:
    """Start the server, wait until it reports its address, and stop it in the end."""
    kubeconfig = folder / "kubeconfig"
    module = ["-m", "infra.local.cluster", "--kubeconfig", str(kubeconfig), *arguments]
    command = ["setpriv", "--pdeathsig", "TERM", sys.executable, *module]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline().strip()
            assert line.startswith(READY), line
            yield Served(process=process, address=line.removeprefix(READY), kubeconfig=kubeconfig)
        finally:
            assert ended(process) < PROMPTLY


@contextmanager
def connected(served: Served) -> Iterator[Any]:
    """Yield an ApiClient of the official client."""
    with config.new_client_from_config(str(served.kubeconfig)) as connection:
        yield connection


def ended(process: subprocess.Popen[str]) -> float:
    """Ask the server to stop; return how many seconds it took."""
    began = time.monotonic()
    process.terminate()
    process.wait(10)
    return time.monotonic() - began
