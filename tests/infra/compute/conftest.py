"""A metadata server, and a host that boots with it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.infra.compute.metadata_server import Metadata, serving
from tests.infra.compute.observed import Observed
from tests.infra.sources import ROOT
from tpu_standins.compute.booting.host import cannot_be_used

SCRIPT = ROOT / "shared" / "tpu_slices" / "adapters" / "startup.sh"
TOKEN = "abcdef.0123456789abcdef"
HASH = f"sha256:{'5a' * 32}"
VERSION = "1.36"
LABELS = (
    "cloud.google.com/gke-accelerator-count=4,cloud.google.com/gke-tpu-accelerator=tpu7x,google.com/tpu-slice-id=tpu-a"
)
INSTANCE = {
    "instance/name": "tpu-a-x7k2",
    "instance/zone": "projects/4711/zones/us-central1-c",
    "project/project-id": "shop",
}


@pytest.fixture(scope="session")
def namespaces() -> None:
    """Skip, loudly, where nobody may have a mount namespace of their own; in CI that fails."""
    if why := cannot_be_used():
        if os.environ.get("CI") == "true":
            pytest.fail(why, pytrace=False)
        pytest.skip(f"THE STARTUP SCRIPT IS NOT TESTED HERE: {why}")


@pytest.fixture
def host(tmp_path: Path) -> Observed:
    made = Observed.made(tmp_path / "host", SCRIPT.read_text())
    made.write("valid-tokens", f"{TOKEN}\n")
    return made


@pytest.fixture
def metadata() -> Metadata:
    """Return the metadata of an instance as its template has it: without a token."""
    attributes = {
        "startup-script": "#!/usr/bin/env bash\n",
        "enable-guest-attributes": "TRUE",
        "kubernetes-version": VERSION,
        "kubeadm-control-plane": "10.0.0.2:6443",
        "kube-labels": LABELS,
        "kube-taints": "google.com/tpu=present:NoSchedule,team=a:NoSchedule",
    }
    return Metadata(attributes, INSTANCE)


@pytest.fixture
def server(metadata: Metadata) -> Iterator[str]:
    with serving(metadata) as address:
        yield address
