"""The real gcloud, which parses each command and asks a server on loopback instead of Google."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.infra.builds.played import write_shim
from tests.infra.sources import ROOT
from tpu_standins.prerequisites import Prerequisite, find

HERE = Path(__file__).parent
SERVICES = (
    "artifactregistry", "cloudbilling", "cloudbuild", "cloudfunctions", "cloudresourcemanager", "cloudscheduler",
    "compute", "container", "firestore", "gkehub", "iam", "logging", "monitoring", "orgpolicy", "pubsub",
    "serviceusage", "storage",
)  # fmt: skip
PERSON = "me@example.com"


@dataclass(frozen=True)
class Gcloud:
    """A folder that has gcloud, to be the first of a PATH, and the environment that it needs."""

    folder: Path
    environment: dict[str, str]

    def run(
        self, *command: str, url: str, environment: Mapping[str, str], folder: Path = ROOT
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in a folder; all of Google is at `url`."""
        google = {f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{service.upper()}": f"{url}/" for service in SERVICES}
        whole = {
            "PATH": f"{self.folder}:{os.environ['PATH']}",
            "HOME": self.environment["CLOUDSDK_CONFIG"],
            **self.environment,
            **google,
            **environment,
        }
        wrapped = ["setpriv", "--pdeathsig", "TERM", *command]
        return subprocess.run(wrapped, cwd=folder, env=whole, capture_output=True, text=True, check=False)

    def parse(self, *command: str) -> str:
        """Return why gcloud does not understand a command, or "". Nothing is done, and nobody is asked."""
        parsed = self.run(*command, url="http://localhost:1", environment={"GCLOUD_ONLY_PARSES": "yes"})
        return parsed.stderr if parsed.returncode else ""


@pytest.fixture(scope="package")
def gcloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gcloud]:
    sdk = find(os.environ)[Prerequisite.GCLOUD]
    if sdk is None:
        missing = ": ".join(Prerequisite.GCLOUD.value)
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    home = tmp_path_factory.mktemp("gcloud")
    (home / "token").write_text("no token")
    environment = {
        "CLOUDSDK_CONFIG": str(home / "config"),
        "CLOUDSDK_AUTH_ACCESS_TOKEN_FILE": str(home / "token"),
        "CLOUDSDK_CORE_ACCOUNT": PERSON,
        "CLOUDSDK_CORE_DISABLE_PROMPTS": "1",
        "CLOUDSDK_CORE_DISABLE_USAGE_REPORTING": "1",
        "CLOUDSDK_CORE_DISABLE_FILE_LOGGING": "1",
        "CLOUDSDK_COMPONENT_MANAGER_DISABLE_UPDATE_CHECK": "1",
    }
    # gcloud's own start finds its Python, and starts it with these arguments first.
    starting = {**os.environ, **environment, "CLOUDSDK_PYTHON_ARGS": f"-S {HERE / 'served.py'}"}
    command = ["setpriv", "--pdeathsig", "KILL", str(sdk / "bin" / "gcloud")]
    with subprocess.Popen(command, env=starting, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        programs = home / "bin"
        programs.mkdir()
        write_shim(programs / "gcloud", "$GCLOUD_SERVED_AT")
        yield Gcloud(programs, {**environment, "GCLOUD_SERVED_AT": server.stdout.readline().strip()})
        server.kill()
