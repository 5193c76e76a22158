"""A host on which the startup script runs: a root of its own, in a mount namespace, with stand-ins for what it calls.

The script and the programs of /usr are the real ones; /usr is mounted read-only. Whatever is written is written below
the root, which outlives a boot, as a disk does; /run does not.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.infra.sources import ROOT

SCRIPT = ROOT / "shared" / "tpu_slices" / "adapters" / "startup.sh"
STAND_INS = Path(__file__).parent / "stand_ins"
LINKS = {"bin": "usr/bin", "lib": "usr/lib", "lib64": "usr/lib64", "sbin": "usr/sbin"}
FSTAB = "LABEL=root / ext4 defaults 0 1\n/swapfile none swap sw 0 0\n# /old none swap sw 0 0\n"
ENTER = """
set -eu
mount --make-rprivate /
mount --bind /usr "$0/usr" && mount -o remount,bind,ro "$0/usr"
mount --rbind /dev "$0/dev"
mount -t proc proc "$0/proc"
exec chroot "$0" /usr/bin/env --ignore-environment PATH=/stand-ins:/installed:/usr/sbin:/usr/bin:/sbin:/bin \
  GCE_METADATA_HOST="$1" /bin/bash /startup-script
"""


def cannot_be_used() -> str:
    """Return why there can be no such host here, or nothing."""
    if shutil.which("unshare") is None:
        return "unshare is missing: apt-get install util-linux"
    tried = subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "mount", "--make-rprivate", "/"], capture_output=True, check=False
    )
    return f"no mount namespace of one's own: {tried.stderr.decode().strip()}" if tried.returncode else ""


@dataclass(frozen=True)
class Host:
    root: Path

    @classmethod
    def made(cls, root: Path, *, image: tuple[str, ...] = ()) -> Host:
        """Return a host whose image brings these programs."""
        for folder in ("usr", "dev", "proc", "run", "tmp", "var/lib", "installed", "joins", "etc/apt"):
            (root / folder).mkdir(parents=True)
        for folder in ("modules-load.d", "sysctl.d"):
            (root / "etc" / folder).mkdir()
        for link, target in LINKS.items():
            (root / link).symlink_to(target)
        (root / "etc" / "fstab").write_text(FSTAB)
        (root / "etc" / "hosts").write_text("127.0.0.1 localhost\n")
        shutil.copytree(STAND_INS, root / "stand-ins")
        for program in image:
            shutil.copy(STAND_INS / "available" / program, root / "installed")
        shutil.copy(SCRIPT, root / "startup-script")
        return cls(root)

    @contextmanager
    def booted(self, server: str) -> Iterator[subprocess.Popen[str]]:
        """Boot it: the script runs until the end of this block at most. What it prints is in `printed`."""
        shutil.rmtree(self.root / "run")
        (self.root / "run").mkdir()
        command = [
            "unshare",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "/bin/sh",
            "-c",
            ENTER,
            str(self.root),
            server,
        ]
        with (self.root / "serial").open("a") as serial:
            boot = subprocess.Popen(command, stdout=serial, stderr=serial, text=True, start_new_session=True)
        try:
            yield boot
        finally:
            if boot.poll() is None:
                os.killpg(boot.pid, signal.SIGKILL)
            boot.wait()

    def boot(self, server: str, seconds: float = 120) -> None:
        """Boot it, and wait until the script has ended well."""
        with self.booted(server) as boot:
            code = boot.wait(seconds)
        assert code == 0, self.printed

    @property
    def printed(self) -> str:
        return (self.root / "serial").read_text()

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

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def written(self) -> Iterator[tuple[str, str]]:
        """Yield every file on its disk but those of the test itself, with what is in it."""
        own = {"usr", "dev", "proc", "stand-ins", "installed", "joins", "startup-script", "calls"}
        for path in sorted(self.root.rglob("*")):
            if path.is_file() and not path.is_symlink() and path.relative_to(self.root).parts[0] not in own:
                yield str(path.relative_to(self.root)), path.read_text(errors="replace")
