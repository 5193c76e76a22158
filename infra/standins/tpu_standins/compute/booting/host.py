"""A host on which a startup script runs: a root of its own, in a mount namespace, with stand-ins for what it calls.

The script and the programs of /usr are the real ones; /usr is mounted read-only, of /dev there is what a shell needs.
Whatever is written is written below the root, which outlives a boot, as a disk does; /run does not. The network is this
machine's. Users other than root need user namespaces.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tpu_standins.patience import PATIENCE_SECONDS

STAND_INS = Path(__file__).parent / "stand_ins"
LINKS = {"bin": "usr/bin", "lib": "usr/lib", "lib64": "usr/lib64", "sbin": "usr/sbin"}
FSTAB = "LABEL=root / ext4 defaults 0 1\n/swapfile none swap sw 0 0\n# /old none swap sw 0 0\n"
PROGRAMS = ("setpriv", "unshare")
ENTER = """
set -eu
mount --make-rprivate /
mount --bind /usr "$0/usr" && mount -o remount,bind,ro "$0/usr"
for each in null zero random urandom; do
  : >>"$0/dev/$each"
  mount --bind "/dev/$each" "$0/dev/$each"
done
mount -t proc proc "$0/proc"
exec chroot "$0" /usr/bin/env --ignore-environment PATH=/stand-ins:/installed:/usr/sbin:/usr/bin:/sbin:/bin \
  GCE_METADATA_HOST="$1" /bin/bash /startup-script
"""


def cannot_be_used() -> str:
    """Return why there can be no such host here, or nothing."""
    for program in PROGRAMS:
        if shutil.which(program) is None:
            return f"{program} is missing: apt-get install util-linux"
    with tempfile.TemporaryDirectory() as folder:
        tried = Host.made(Path(folder) / "host", "exit 0")
        with tried.booted("nowhere") as boot:
            failed = boot.wait(PATIENCE_SECONDS)
        return f"no mount namespace of one's own: {tried.printed.strip()}" if failed else ""


def _entering() -> tuple[str, ...]:
    """Return the command that runs another one in namespaces of its own, and kills it when this process dies."""
    as_root = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    return ("setpriv", "--pdeathsig=KILL", "unshare", *as_root, "--mount", "--pid", "--fork", "--kill-child")


@dataclass(frozen=True)
class Host:
    root: Path

    @classmethod
    def made(cls, root: Path, script: str, *, image: tuple[str, ...] = ()) -> Self:
        """Return a host with this startup script, whose image brings these programs."""
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
        (root / "startup-script").write_text(script)
        (root / "dev" / "fd").symlink_to("/proc/self/fd")
        return cls(root)

    @contextmanager
    def booted(self, server: str) -> Iterator[subprocess.Popen[str]]:
        """Boot it: the script runs until the end of this block at most. What it prints is in `printed`."""
        boot = self.start(server)
        try:
            yield boot
        finally:
            halt(boot)

    def start(self, server: str) -> subprocess.Popen[str]:
        """Boot it with a metadata server, HOST:PORT. It ends with the thread that called this."""
        shutil.rmtree(self.root / "run")
        (self.root / "run").mkdir()
        command = [*_entering(), "/bin/sh", "-c", ENTER, str(self.root), server]
        with (self.root / "serial").open("a") as serial:
            return subprocess.Popen(command, stdout=serial, stderr=serial, text=True, start_new_session=True)

    @property
    def printed(self) -> str:
        return (self.root / "serial").read_text()

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)


def halt(boot: subprocess.Popen[str]) -> None:
    """End a boot at once, as without power."""
    if boot.poll() is None:
        os.killpg(boot.pid, signal.SIGKILL)
    boot.wait()
