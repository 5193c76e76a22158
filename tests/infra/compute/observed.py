"""A host, and what a test sees of it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

from tpu_standins.compute.booting.host import Host
from tpu_standins.patience import PATIENCE_SECONDS


@dataclass(frozen=True)
class Observed(Host):
    """A host whose startup script is tried."""

    def boot(self, server: str) -> None:
        """Boot it, and wait until the script has ended well."""
        with self.booted(server) as boot:
            self.await_end(boot)

    def await_end(self, boot: subprocess.Popen[str]) -> None:
        """Wait until the script of a boot has ended well."""
        assert boot.wait(PATIENCE_SECONDS) == 0, self.printed

    @property
    def calls(self) -> list[str]:
        """What was called of the stand-ins, with arguments."""
        log = self.root / "calls"
        return log.read_text().splitlines() if log.exists() else []

    def called(self, beginning: str) -> list[str]:
        return [call for call in self.calls if call.startswith(beginning)]

    @property
    def joins(self) -> list[str]:
        """The configurations that kubeadm was called with, in order."""
        return [path.read_text() for path in sorted((self.root / "joins").iterdir())]

    def read(self, path: str) -> str:
        return (self.root / path).read_text()

    def written(self) -> Iterator[tuple[str, str]]:
        """Yield every file on its disk but those of the test itself, with what is in it."""
        own = {"usr", "dev", "proc", "stand-ins", "installed", "joins", "startup-script", "calls"}
        for path in sorted(self.root.rglob("*")):
            if path.is_file() and not path.is_symlink() and path.relative_to(self.root).parts[0] not in own:
                yield str(path.relative_to(self.root)), path.read_text(errors="replace")
