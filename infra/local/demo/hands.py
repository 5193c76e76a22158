"""What the demo does to the system: kubectl commands, as a researcher runs them, and stockouts of the vendor."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

from infra.local.addresses import Addresses
from infra.local.borrowed import DEMO_NAMESPACE
from infra.local.demo.http import press
from infra.local.demo.steps import Act, Apply, Delete, Hold, LetGo, Restock, RunOut, Show
from tpu_standins.patience import PATIENCE_SECONDS


class ActFailed(Exception):
    """Something the demo did was refused, or not answered. The message says what and why."""


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
            case Restock(pools):
                self._press("faults", {self._names: pools}, method="DELETE")
                return f"ended the stockout for {pools}"
            case Hold(pools):
                self._press("faults", {"kind": "held", "pools": pools})
                return f"let the next creation of {pools} last"
            case LetGo(pools):
                self._press("releases", {"pools": pools})
                return f"let the creation of {pools} go on"

    def _kubectl(self, *arguments: str) -> str:
        kubeconfig = self.addresses.kubeconfig
        where = (f"--kubeconfig={kubeconfig}", f"--cache-dir={kubeconfig.parent / 'kubectl'}", f"-n={DEMO_NAMESPACE}")
        command = ["kubectl", *where, *arguments]
        try:
            ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
        except subprocess.TimeoutExpired as problem:
            raise ActFailed(f"kubectl {' '.join(arguments)} did not end in {PATIENCE_SECONDS:.0f} s") from problem
        if ended.returncode != 0:
            raise ActFailed(f"kubectl {' '.join(arguments)}: {ended.stderr.strip()}")
        said = ended.stdout.strip()
        return f"kubectl {' '.join(arguments)}\n{said}" if "\n" in said else f"kubectl {arguments[0]}: {said}"

    def _run_out(self, pools: str) -> str:
        """Press so that nobody has to be in time: for one creation, or until it is ended."""
        if self.addresses.compute:
            self._press("faults", {"kind": "stockout", "names": pools})
            return f"injected a stockout for {pools}"
        self._press("faults", {"kind": "stockout", "pools": pools, "times": 1})
        return f"injected a stockout for the next {pools}"

    def _press(self, button: str, body: Mapping[str, object], *, method: str = "POST") -> None:
        try:
            press(f"{self.addresses.buttons}/{button}", body, method=method)
        except OSError as problem:
            raise ActFailed(f"{method} /{button}: {problem}") from problem

    @property
    def _names(self) -> str:
        """Return the field of a fault that has the pattern of names."""
        return "names" if self.addresses.compute else "pools"
