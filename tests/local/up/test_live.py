"""The stack with a GKE that it does not simulate: it stays below the cap, and what it bought is released in the end.

Here that GKE is the local one, started apart from the stack, as somebody's would be.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

import pytest
import yaml

from infra.local.__main__ import main
from infra.local.borrowed import standing
from infra.local.plan import REPOSITORY
from tests.cluster.servers import EMBEDDED, module
from tpu_standins.clients.api import Api
from tpu_standins.kubelet.keys import RUN_SECONDS
from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.ports import free_ports
from tpu_standins.prerequisites import Tools
from tpu_standins.processes import Processes
from tpu_standins.testing.leftovers import running_in
from tpu_standins.testing.waiting import until

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket, pytest.mark.real]

CONTEXT = "gke_shop_us-central2_b"
PATH = "projects/shop/locations/us-central2/clusters/b"
USER = {"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r"}
PACE = [f"--{name}-seconds=0.2" for name in ("create", "join", "ready", "chips", "delete")]


@dataclass(frozen=True, slots=True)
class Theirs:
    """Somebody's GKE cluster: its kubeconfig, the address of GKE, and the URL that tells of its node pools."""

    kubeconfig: Path
    gke: str
    buttons: str

    def pools(self) -> list[str]:
        with urlopen(f"{self.buttons}/pools", timeout=PATIENCE_SECONDS) as answer:
            return [str(pool["name"]) for pool in json.load(answer)["pools"]]


@pytest.fixture
def theirs(tools: Tools, tmp_path: Path) -> Iterator[Theirs]:
    plain, kubeconfig = tmp_path / "plain.kubeconfig", tmp_path / "gke.kubeconfig"
    server, port, buttons = free_ports(3)
    gke, url = f"127.0.0.1:{port}", f"http://127.0.0.1:{buttons}"
    ports = ("--port", str(port), "--buttons-port", str(buttons))
    known = ("--kubeconfig", str(kubeconfig), "--cluster", PATH, *ports, *PACE)
    listens = f"listening on https://127.0.0.1:{server}"
    with Processes(setpriv=tools.setpriv, logs=tmp_path / "logs", environment=os.environ) as processes:
        cluster = module(EMBEDDED, listens, "--port", str(server), "--kubeconfig", str(plain))
        processes.wait_until_ready(*processes.start(cluster))
        document = yaml.safe_load(plain.read_text())
        document["contexts"][0]["name"] = document["current-context"] = CONTEXT
        kubeconfig.write_text(yaml.safe_dump(document))
        beside = (module(part, "ready", "--kubeconfig", str(kubeconfig)) for part in ("jobset", "kubelet"))
        its_gke = module("gke", f"listening on {gke} buttons {url}", *known)
        processes.wait_until_ready(*processes.start(*beside, its_gke))
        yield Theirs(kubeconfig, gke, url)


@dataclass(frozen=True, slots=True)
class Up:
    """A running stack."""

    process: subprocess.Popen[str]
    state: Path

    @property
    def said(self) -> str:
        return (self.state / "out").read_text()

    def slices(self) -> str:
        """Return what `slices list` prints."""
        environment = json.loads((self.state / "stack.json").read_text())["environment"]
        command = [sys.executable, "-m", "tpu_slices_cli", "list"]
        done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
        return done.stdout

    def decided(self) -> str:
        """Return what the functions logged."""
        return "".join(each.read_text() for each in (self.state / "logs").glob("function-*.log*"))

    def until(self, condition: Callable[[], object], what: str) -> None:
        def holds() -> object:
            assert self.process.poll() is None, self.said
            return condition()

        until(holds, what)


@contextmanager
def up(theirs: Theirs, folder: Path, chips: int) -> Iterator[Up]:
    state = folder / "state"
    state.mkdir()
    user, settings = folder / "user.json", folder / "settings.yaml"
    user.write_text(json.dumps(USER))
    own = yaml.safe_load((REPOSITORY / "infra" / "clusters" / "demo-project" / "demo.yaml").read_text())
    settings.write_text(yaml.safe_dump(own | {"path": PATH}))
    given = ("--gke", "live", "--project", "shop", "--impersonate", "buyer@shop.iam.gserviceaccount.com")
    limits = ("--kubeconfig", str(theirs.kubeconfig), "--settings", str(settings), "--chips", str(chips), "--yes")
    environment = {"TMPDIR": str(state), "GKE_EMULATOR_HOST": theirs.gke, "GOOGLE_APPLICATION_CREDENTIALS": str(user)}
    with (state / "out").open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "infra.local", "--state", str(state), "up", *given, *limits],
            cwd=REPOSITORY,
            env={**os.environ, **environment},
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
        )
    try:
        one = Up(process, state)
        one.until(lambda: "Press Ctrl-C to release all slices" in one.said, "the stack")
        yield one
    finally:
        process.kill()
        process.wait()


def jobset(name: str) -> str:
    """Return a JobSet of one slice of 16 chips, whose pods do not come to an end."""
    document = yaml.safe_load((REPOSITORY / "examples" / "v5e.yaml").read_text())
    document["metadata"]["name"] = name
    (job,) = document["spec"]["replicatedJobs"]
    job["template"]["spec"]["template"]["metadata"] = {"annotations": {RUN_SECONDS: "100000"}}
    return str(yaml.safe_dump(document))


def apply(theirs: Theirs, name: str) -> None:
    command = ["kubectl", f"--kubeconfig={theirs.kubeconfig}", "apply", "-f", "-"]
    subprocess.run(command, input=jobset(name), text=True, check=True, capture_output=True)


def test_node_pools_are_created_up_to_the_cap_and_deleted_in_the_end(theirs: Theirs, tmp_path: Path) -> None:
    with closing(Api.of(theirs.kubeconfig)) as api:
        with up(theirs, tmp_path, chips=16) as stack:
            assert "GKE is not simulated: node pools of up to 16 chips at a time" in stack.said
            apply(theirs, "first")
            stack.until(theirs.pools, "a node pool")
            apply(theirs, "second")
            stack.until(lambda: "ChipLimitReached" in stack.decided(), "the cap")
            assert "ChipLimitReached" in stack.slices()
            assert len(theirs.pools()) == 1
            stack.process.send_signal(signal.SIGINT)
            assert stack.process.wait(PATIENCE_SECONDS) == 130, stack.said
            assert "Releasing all slices" in stack.said
            assert "demo is forgotten" in stack.said
        assert theirs.pools() == []
        assert standing(api) == {}
        assert {each["metadata"]["name"] for each in api.list("jobsets")["items"]} == {"first", "second"}
    assert not (stack.state / "credentials.json").exists()
    assert not running_in(stack.state)


def test_gke_itself_has_no_slices_on_compute_engine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ("--gke", "live", "--project", "shop", "--impersonate", "a", "--kubeconfig", "none", "--backend", "compute")
    monkeypatch.setattr(sys, "argv", ["infra.local", "up", *given])
    assert main() == 2
    assert capsys.readouterr().err == "--gke live is of clusters of GKE: leave out --backend compute\n"
