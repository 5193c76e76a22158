"""A proxy in its own process, and its buttons."""

import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.testing.modules import PYTHON

ADDRESSES = re.compile(r"listening on (https://127\.0\.0\.1:\d+) buttons (http://127\.0\.0\.1:\d+)\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxied:
    """A running proxy."""

    process: subprocess.Popen[str]
    kubeconfig: Path
    address: str
    buttons: str

    def press(self, fault: str, **more: Any) -> dict[str, int]:
        """Inject a fault; return how many watches or connections it affected."""
        return dict(self._asked("POST", {"fault": fault, **more}))

    def clear(self) -> None:
        self._asked("DELETE", None)

    def faults(self) -> list[dict[str, Any]]:
        return list(self._asked("GET", None)["faults"])

    def open_watches(self) -> int:
        """Return how many watches are open: it learns a little later that a client went."""
        return int(self._asked("GET", None)["watches"])

    def _asked(self, method: str, body: dict[str, Any] | None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.buttons}/faults", data, method=method)
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as reply:
            return json.load(reply)


@contextmanager
def before(kubeconfig: Path, folder: Path) -> Iterator[Proxied]:
    """Run a proxy before the API server of a kubeconfig; in the end it must stop."""
    written = folder / "proxy.kubeconfig"
    arguments = ("--kubeconfig", str(kubeconfig), "--write", str(written))
    command = ["setpriv", "--pdeathsig", "TERM", sys.executable, "-m", "tpu_standins.proxy", *arguments]
    environment = {**os.environ, **PYTHON}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = ADDRESSES.fullmatch(line)
            assert found, line
            yield Proxied(process=process, kubeconfig=written, address=found[1], buttons=found[2])
        finally:
            process.terminate()
            process.wait(PATIENCE_SECONDS)
