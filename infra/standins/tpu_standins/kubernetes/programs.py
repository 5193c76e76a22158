"""The four programs of a control plane, wherever there are some: of envtest, on the PATH, or built by us."""

import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tpu_standins.kubernetes.versions import numbers
from tpu_standins.patience import PATIENCE_SECONDS

NAMES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
ASSETS = "KUBEBUILDER_ASSETS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """The programs, which exist; the version that the API server reports; and where they come from, for people."""

    etcd: Path
    apiserver: Path
    controller_manager: Path
    scheduler: Path
    version: str
    origin: str

    def __str__(self) -> str:
        return f"Kubernetes {self.version}: {self.origin}"


@dataclass(frozen=True, slots=True)
class Found:
    """The programs to use, if there are any, and why others are not used."""

    programs: Programs | None
    remarks: tuple[str, ...] = ()


class Unusable(Exception):
    """Programs are there, but not all, or of another version. The message is for people."""


def cache_of(environment: Mapping[str, str]) -> Path:
    """Return the folder in which what we build is kept, a folder for each version."""
    return caches(environment) / "kubernetes"


def caches(environment: Mapping[str, str]) -> Path:
    """Return our folder below the user's cache."""
    base = environment.get("XDG_CACHE_HOME") or Path(environment.get("HOME", "~")).expanduser() / ".cache"
    return Path(base) / "tpu-slice-provisioner"


def built(environment: Mapping[str, str], version: str) -> Path:
    return cache_of(environment) / version


def complete(folder: Path) -> bool:
    """Return whether all programs are in this folder."""
    return None not in _in(folder).values()


def reported_version(apiserver: Path) -> str:
    """Return what `kube-apiserver --version` says, empty if it says nothing."""
    command = (apiserver, "--version")
    answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)
    return answer.stdout.strip().removeprefix("Kubernetes ")


def find(environment: Mapping[str, str], version: str, ask: Callable[[Path], str] = reported_version) -> Found:
    """Return the programs of KUBEBUILDER_ASSETS, else those on the PATH, else those that we built."""
    remarks: list[str] = []
    for origin, paths in _elsewhere(environment):
        try:
            return Found(_usable(origin, paths, version, ask), tuple(remarks))
        except Unusable as problem:
            remarks.append(str(problem))
    folder = built(environment, version)
    if not complete(folder):
        return Found(None, tuple(remarks))
    return Found(_programs(f"{folder}, built here", _in(folder), version), tuple(remarks))


def _elsewhere(environment: Mapping[str, str]) -> Iterator[tuple[str, dict[str, Path | None]]]:
    """Yield what others provide; programs on the PATH count if an API server is among them."""
    if folder := environment.get(ASSETS):
        yield f"{ASSETS}={folder}", _in(Path(folder))
    on_path = {name: _which(name, environment.get("PATH", "")) for name in NAMES}
    if apiserver := on_path["kube-apiserver"]:
        yield f"the PATH ({apiserver.parent})", on_path


def _in(folder: Path) -> dict[str, Path | None]:
    return {name: _which(name, str(folder)) for name in NAMES}


def _which(name: str, path: str) -> Path | None:
    where = shutil.which(name, path=path)
    return Path(where).absolute() if where else None


def _usable(origin: str, paths: Mapping[str, Path | None], version: str, ask: Callable[[Path], str]) -> Programs:
    """Return the programs. Raise Unusable if one is missing, or if their minor version is not ours."""
    missing = [name for name, path in paths.items() if path is None]
    apiserver = paths["kube-apiserver"]
    if missing or apiserver is None:
        raise Unusable(f"{origin} is not usable: without {', '.join(missing)}")
    theirs = ask(apiserver)
    if numbers(theirs)[:2] != numbers(version)[:2]:
        raise Unusable(f"{origin} is not usable: {theirs or 'no version'} instead of {version}")
    return _programs(origin, paths, theirs)


def _programs(origin: str, paths: Mapping[str, Path | None], version: str) -> Programs:
    etcd, apiserver, controller_manager, scheduler = (path for name in NAMES if (path := paths[name]))
    return Programs(
        etcd=etcd,
        apiserver=apiserver,
        controller_manager=controller_manager,
        scheduler=scheduler,
        version=version,
        origin=origin,
    )
