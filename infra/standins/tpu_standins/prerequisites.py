"""What must be installed before the local stack can run, and how to install what is missing."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path


class Prerequisite(Enum):
    """A program or file that the local stack requires. The value is (name, remedy)."""

    GCLOUD = (
        "Google Cloud CLI",
        "https://cloud.google.com/sdk/docs/install, or CLOUDSDK_ROOT_DIR=its folder",
    )
    JAVA = ("Java", "apt-get install default-jre-headless")
    PUBSUB_JAR = (
        "Pub/Sub emulator",
        "gcloud components install pubsub-emulator, or apt-get install google-cloud-cli-pubsub-emulator",
    )
    FIRESTORE_JAR = (
        "Firestore emulator",
        "gcloud components install cloud-firestore-emulator, or apt-get install google-cloud-cli-firestore-emulator",
    )
    KUBECTL = ("kubectl", "gcloud components install kubectl, or apt-get install kubectl")
    SETPRIV = ("setpriv", "apt-get install util-linux; available on Linux only")


@dataclass(frozen=True, slots=True)
class Missing:
    name: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """The programs and files that the local stack uses; all of them exist."""

    java: Path
    pubsub_jar: Path
    firestore_jar: Path
    kubectl: Path
    setpriv: Path


class PrerequisitesMissing(Exception):
    """Prerequisites are missing. The message lists each one with its remedy."""


def missing(found: Mapping[Prerequisite, Path | None]) -> list[Missing]:
    """Return what was not found, in the order in which a person would install it."""
    return [Missing(*each.value) for each in Prerequisite if found.get(each) is None]


def explained(lacking: list[Missing]) -> str:
    lines = [f"  {each.name}: {each.remedy}" for each in lacking]
    return "\n".join(["The local stack needs programs that are not installed:", *lines])


def require(found: Mapping[Prerequisite, Path | None]) -> Tools:
    """Return the paths of all tools. Raise PrerequisitesMissing if any was not found."""
    if lacking := missing(found):
        raise PrerequisitesMissing(explained(lacking))
    present = {each: path for each, path in found.items() if path is not None}
    return Tools(
        java=present[Prerequisite.JAVA],
        pubsub_jar=present[Prerequisite.PUBSUB_JAR],
        firestore_jar=present[Prerequisite.FIRESTORE_JAR],
        kubectl=present[Prerequisite.KUBECTL],
        setpriv=present[Prerequisite.SETPRIV],
    )


def find(environment: Mapping[str, str]) -> dict[Prerequisite, Path | None]:
    """Return the path of each prerequisite, looked up on the PATH and in the folder of the Google Cloud CLI."""
    path = environment.get("PATH", os.defpath)
    sdk = _sdk_root(environment, path)
    platform = sdk / "platform" if sdk else None
    return {
        Prerequisite.GCLOUD: sdk,
        Prerequisite.JAVA: _program("java", path),
        Prerequisite.PUBSUB_JAR: _newest(platform, "pubsub-emulator/lib/cloud-pubsub-emulator-*-all.jar"),
        Prerequisite.FIRESTORE_JAR: _newest(platform, "cloud-firestore-emulator/cloud-firestore-emulator*.jar"),
        Prerequisite.KUBECTL: _program("kubectl", path),
        Prerequisite.SETPRIV: _program("setpriv", path),
    }


def _program(name: str, path: str) -> Path | None:
    where = shutil.which(name, path=path)
    return Path(where) if where else None


def _newest(folder: Path | None, pattern: str) -> Path | None:
    """Return the match that was installed last."""
    matches = list(folder.glob(pattern)) if folder else []
    return max(matches, key=lambda each: each.stat().st_mtime, default=None)


def _sdk_root(environment: Mapping[str, str], path: str) -> Path | None:
    """Return the folder of the Google Cloud CLI. Running gcloud takes more than a second, so it is the last resort."""
    gcloud = _program("gcloud", path)
    said = environment.get("CLOUDSDK_ROOT_DIR")
    guesses = [Path(said)] if said else []
    guesses += [gcloud.resolve().parent.parent] if gcloud else []
    for each in guesses:
        if (each / "platform").is_dir():
            return each
    return _asked(gcloud, environment) if gcloud else None


def _asked(gcloud: Path, environment: Mapping[str, str]) -> Path | None:
    answer = subprocess.run(
        [gcloud, "info", "--format=value(installation.sdk_root)"],
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    return Path(answer) if answer else None


def main() -> int:
    """Print what was found or what is missing; return exit code 2 if anything is missing."""
    try:
        tools = require(find(os.environ))
    except PrerequisitesMissing as problem:
        print(problem, file=sys.stderr)
        return 2
    print(f"All prerequisites are installed; Java at {tools.java}, kubectl at {tools.kubectl}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
