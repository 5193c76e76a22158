"""What the demo does to the system: kubectl commands, as a researcher runs them, and stockouts of the vendor."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.request import Request

from infra.local.addresses import Addresses
from infra.local.borrowed import DEMO_NAMESPACE
from infra.local.demo.http import OPENER
from infra.local.demo.steps import Act, Apply, Delete, Restock, RunOut, Show

KUBECTL_SECONDS = 30


class ActFailed(Exception):
    """Something the demo did was refused. The message is that of kubectl."""


@dataclass(frozen=True, slots=True)
class Hands:
    addresses: Addresses

    def do(self, act: Act) -> str:
        """Perform the action and return a description of it. Raise ActFailed if kubectl refuses it."""
        match act:
            case Apply(manifest):
                return self._kubectl("apply", "-f", str(manifest))
            case Delete(manifest):
                # Without waiting: the table is updated meanwhile, and the outcome is a condition of the step.
                return self._kubectl("delete", "--wait=false", "-f", str(manifest))
            case Show(what):
                return self._kubectl("get", *what)
            case RunOut(pools):
                return self._run_out(pools)
            case Restock():
                self._press("DELETE")
                return "ended the stockout"

    def _kubectl(self, *arguments: str) -> str:
        kubeconfig = self.addresses.kubeconfig
        where = (f"--kubeconfig={kubeconfig}", f"--cache-dir={kubeconfig.parent / 'kubectl'}", f"-n={DEMO_NAMESPACE}")
        command = ["kubectl", *where, *arguments]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=KUBECTL_SECONDS, check=False)
        if ended.returncode != 0:
            raise ActFailed(f"kubectl {' '.join(arguments)}: {ended.stderr.strip()}")
        said = ended.stdout.strip()
        return f"kubectl {' '.join(arguments)}\n{said}" if "\n" in said else f"kubectl {arguments[0]}: {said}"

    def _run_out(self, pools: str) -> str:
        """Press so that nobody has to be in time: for one creation, or until it is ended."""
        if self.addresses.compute:
            self._press("POST", {"kind": "stockout", "names": pools})
            return f"injected a stockout for {pools}"
        self._press("POST", {"kind": "stockout", "pools": pools, "times": 1})
        return f"injected a stockout for the next {pools}"

    def _press(self, method: str, body: Mapping[str, Any] | None = None) -> None:
        data = None if body is None else json.dumps(body).encode()
        with OPENER.open(Request(f"{self.addresses.buttons}/faults", data, method=method), timeout=5):  # noqa: S310 - ours
            return
