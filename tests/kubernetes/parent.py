"""A parent process that a test kills: it runs a control plane and never finishes.

`python -m tests.kubernetes.parent FOLDER`
"""

import os
import signal
import sys
from pathlib import Path

from infra.local.interrupts import orderly_end
from infra.local.kubernetes.control_plane import control_plane
from infra.local.kubernetes.programs import find
from infra.local.kubernetes.versions import pinned
from infra.local.prerequisites import Prerequisite
from infra.local.prerequisites import find as find_tools
from infra.local.processes import Processes


def main(folder: Path) -> None:
    programs = find(os.environ, pinned()).programs
    setpriv = find_tools(os.environ)[Prerequisite.SETPRIV]
    assert programs
    assert setpriv
    with (
        orderly_end(),
        Processes(setpriv=setpriv, logs=folder / "logs", environment=os.environ) as processes,
        control_plane(programs, processes, folder),
    ):
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        signal.pause()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
