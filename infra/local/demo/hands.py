"""What the demo does to the system: kubectl commands, as a researcher runs them, and stockouts of the vendor."""

import subprocess
from dataclasses import dataclass

from infra.local.addresses import Addresses
from infra.local.borrowed import DEMO_NAMESPACE
from infra.local.demo.http import press
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
                press(self._faults, method="DELETE")
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
            press(self._faults, {"kind": "stockout", "names": pools})
            return f"injected a stockout for {pools}"
        press(self._faults, {"kind": "stockout", "pools": pools, "times": 1})
        return f"injected a stockout for the next {pools}"

    @property
    def _faults(self) -> str:
        return f"{self.addresses.buttons}/faults"
