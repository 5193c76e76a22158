"""Builds the programs from go.mod into a folder that appears only when all of them are complete."""

import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tpu_standins.interrupts import uninterrupted
from tpu_standins.kubernetes import toolchain
from tpu_standins.kubernetes.programs import NAMES, built, cache_of, complete, find
from tpu_standins.kubernetes.progress import Progress
from tpu_standins.kubernetes.toolchain import NotBuilt
from tpu_standins.kubernetes.versions import MODULE, go_of, kubernetes_of, link_flags, pinned

ETCD = "go.etcd.io/etcd/server/v3"
PACKAGES = (ETCD, *(f"k8s.io/kubernetes/cmd/{name}" for name in NAMES if name != "etcd"))
GO_CALLS_ETCD = "server"  # the last part of the package's path that is not a version
BUILDING = "building-"
MINUTES = 8
"""On two processors, with the modules to be downloaded."""
NOT_THERE = "NO KUBERNETES {version}: its tests are skipped, with CI=true they fail. {why}"
LINES_OF_ERROR = 5

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Go:
    """A Go toolchain, run in the folder of a go.mod."""

    program: Path
    environment: Mapping[str, str]
    folder: Path

    def lines(self, *arguments: str, heard: Callable[[str], None]) -> list[str]:
        """Run it and return its output; each line of its standard error is heard at once. Raise NotBuilt if it fails.

        It leads a process group of its own, which is ended with this call, however that ends.
        """
        told: list[str] = []
        with tempfile.TemporaryFile("w+") as output, self._started(arguments, output.fileno()) as process:
            for line in process.stderr or ():
                told.append(line.strip())
                heard(line.strip())
            if process.wait() != 0:
                raise NotBuilt(f"go {arguments[0]} failed: {' | '.join(told[-LINES_OF_ERROR:])}")
            output.seek(0)
            return output.read().splitlines()

    @contextmanager
    def _started(self, arguments: Sequence[str], output: int) -> Iterator[subprocess.Popen[str]]:
        process: subprocess.Popen[str] | None = None
        try:
            with uninterrupted():
                process = self._start(arguments, output)
            yield process
        finally:
            if process is not None:
                _end(process)

    def _start(self, arguments: Sequence[str], output: int) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self.program, *arguments],
            cwd=self.folder,
            env={**self.environment, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )


def _end(process: subprocess.Popen[str]) -> None:
    """End the process with its group, if it still runs."""
    with uninterrupted():
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stderr:
            process.stderr.close()


def provide(environment: Mapping[str, str], tell: Tell) -> int:
    """Find the programs, or build them, and say which are used. Return the exit code."""
    version = pinned()
    found = find(environment, version)
    for remark in found.remarks:
        tell(remark)
    if found.programs is None:
        try:
            build(environment, tell)
        except (NotBuilt, OSError) as problem:
            tell(NOT_THERE.format(version=version, why=problem))
            return 1
        found = find(environment, version)
    tell(str(found.programs))
    return 0


def minutes_left(environment: Mapping[str, str]) -> int:
    """Return how many minutes of two processors `provide` would take."""
    return MINUTES if find(environment, pinned()).programs is None else 0


def build(environment: Mapping[str, str], tell: Tell) -> Path:
    """Build all programs, unless another build has just done so. Return their folder. Raise NotBuilt."""
    module = (MODULE / "go.mod").read_text()
    version = kubernetes_of(module)
    cache = cache_of(environment)
    target = built(environment, version)
    with alone(cache, tell):
        if complete(target):
            return target
        program, which = toolchain.go(environment, go_of(module), cache, tell)
        tell(f"Building etcd and Kubernetes {version} with {which}: some {MINUTES} minutes.")
        with appearing(target) as folder:
            go = Go(program=program, environment=environment, folder=MODULE)
            compiled(go, PACKAGES, ("-ldflags", link_flags(version)), folder, tell)
            (folder / GO_CALLS_ETCD).rename(folder / "etcd")
            if missing := [name for name in NAMES if not (folder / name).is_file()]:
                raise NotBuilt(f"go build made no {', '.join(missing)}")
    return target


@contextmanager
def appearing(target: Path) -> Iterator[Path]:
    """Yield where a folder is to be made; it is at `target`, beside that, only once the block has ended without error.

    What is there already is replaced: somebody removed a part of it.
    """
    with tempfile.TemporaryDirectory(prefix=BUILDING, dir=target.parent) as unfinished:
        whole = Path(unfinished) / "whole"
        yield whole
        shutil.rmtree(target, ignore_errors=True)
        whole.rename(target)


def compiled(go: Go, packages: Sequence[str], linked: Sequence[str], folder: Path, tell: Tell) -> None:
    """Compile programs into a new folder, with these flags for the linker. Raise NotBuilt."""
    flags = ("-buildvcs=false", "-mod=readonly", "-trimpath")
    modules = Progress(total=0, tell=lambda _: None)
    parts = go.lines("list", *flags, "-deps", *packages, heard=lambda _: modules.advance())
    tell(f"  modules are there, {modules.done} of them downloaded; {len(parts)} packages to compile or to reuse")
    progress = Progress(total=len(parts), tell=tell)
    folder.mkdir()
    go.lines("build", "-v", *flags, *linked, "-o", f"{folder}/", *packages, heard=lambda _: progress.advance())


@contextmanager
def alone(cache: Path, tell: Tell) -> Iterator[None]:
    """Wait until no other build runs, then remove what killed ones left."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        lock = (cache / "lock").open("w")
    except OSError as problem:
        raise NotBuilt(f"{cache} cannot be written: {problem.strerror}") from problem
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell("Waiting for another build.")
            fcntl.flock(lock, fcntl.LOCK_EX)
        for left in cache.glob(f"{BUILDING}*"):
            shutil.rmtree(left, ignore_errors=True)
        yield
