"""What the demo does to the system: what a researcher does with kubectl, and one button of the local GKE."""

import json
import subprocess
from dataclasses import dataclass
from urllib.request import Request

from infra.local.addresses import Addresses
from infra.local.demo.http import OPENER
from infra.local.demo.steps import Act, Apply, Delete, RunOut

KUBECTL_SECONDS = 30


class ActFailed(Exception):
    """Something the demo did was refused. The text is what kubectl or the button said."""


@dataclass(frozen=True, slots=True)
class Hands:
    addresses: Addresses

    def do(self, act: Act) -> str:
        """Do it; give it in words. ActFailed where it was refused."""
        match act:
            case Apply(manifest):
                return self._kubectl("apply", "-f", str(manifest))
            case Delete(manifest):
                # Not waited for: the table goes on meanwhile, and what must follow is a condition of the step.
                return self._kubectl("delete", "--wait=false", "-f", str(manifest))
            case RunOut(pools):
                return self._run_out(pools)

    def _kubectl(self, *arguments: str) -> str:
        kubeconfig = self.addresses.kubeconfig
        command = ["kubectl", f"--kubeconfig={kubeconfig}", f"--cache-dir={kubeconfig.parent / 'kubectl'}", *arguments]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=KUBECTL_SECONDS, check=False)
        if ended.returncode != 0:
            raise ActFailed(f"kubectl {' '.join(arguments)}: {ended.stderr.strip()}")
        return f"kubectl {arguments[0]}: {ended.stdout.strip()}"

    def _run_out(self, pools: str) -> str:
        body = json.dumps({"kind": "stockout", "pools": pools, "times": 1}).encode()
        with OPENER.open(Request(f"{self.addresses.buttons}/faults", body), timeout=5):  # noqa: S310 - a URL of our own
            return f"the zone is out of hosts for the next node pool {pools}"
