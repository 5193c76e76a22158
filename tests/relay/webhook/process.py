"""The webhook as a process, beside an API server that keeps its certificates and calls it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from infra.kubernetes.overlay import NAMESPACE
from infra.local.relay_account import APPLIED, token_of
from infra.local.webhook import ACCOUNT, HOST, configuration, manifests
from tests.local.served import ROOT
from tests.relay.attack.stage import Running, Sources, running_program
from tpu_standins.clients.api import Api
from tpu_standins.clients.errors import ApiError
from tpu_standins.kubeconfig import for_token_file

HERE = Sources(ROOT, (sys.executable, "-m", "relay.webhook"))
MANAGER = "test"


@dataclass(frozen=True)
class Site:
    """An API server on which the webhook has its account; `admin` is an administrator's kubeconfig, `own` its own."""

    admin: Path
    own: Path

    @contextmanager
    def replica(self, port: int, sources: Sources = HERE, /, **environment: str) -> Iterator[Running]:
        """Run the webhook until the block is left, from when it serves."""
        own = {
            "KUBECONFIG": str(self.own),
            "HOST": HOST,
            "PORT": str(port),
            "NAMES": HOST,
            "DRAIN_SECONDS": "0",
            **environment,
        }
        with running_program(sources, own) as process:
            process.until(lambda: process.said(f"listening on https://{HOST}:{port}"))
            yield process

    def call(self, port: int, *, conditions: bool) -> None:
        """Have the API server call the webhook at a port; `conditions`: as it evaluates them."""
        with closing(Api.of(self.admin)) as api:
            called = configuration(f"https://{HOST}:{port}", conditions=conditions)
            api.apply(APPLIED[called["kind"]], called, manager=MANAGER)

    def uncall(self) -> None:
        """Have the API server call the webhook no more."""
        with closing(Api.of(self.admin)) as api, suppress(ApiError):
            api.delete("mutatingwebhookconfigurations", None, "tpu-slice-provisioner")


@contextmanager
def site(admin: Path, folder: Path) -> Iterator[Site]:
    """Apply what the webhook has in a cluster. In the end nothing calls it any more."""
    with closing(Api.of(admin)) as api:
        for manifest in ({"kind": "Namespace", "metadata": {"name": NAMESPACE}}, *manifests()):
            api.apply(APPLIED[manifest["kind"]], manifest, manager=MANAGER)
        token, own = folder / "webhook.token", folder / "webhook.kubeconfig"
        token.write_text(token_of(api, ACCOUNT))
        own.write_text(for_token_file(admin.read_text(), token))
        made = Site(admin, own)
        try:
            yield made
        finally:
            made.uncall()
            with suppress(ApiError):
                api.delete("secrets", NAMESPACE, ACCOUNT)
