"""A parent process that a test kills: it runs a control plane and never finishes.

`python -m tests.kubernetes.parent FOLDER`
"""

import os
import signal
import sys
from pathlib import Path

from tpu_standins.interrupts import orderly_end
from tpu_standins.kubernetes.control_plane import control_plane
from tpu_standins.kubernetes.programs import find
from tpu_standins.kubernetes.versions import pinned
from tpu_standins.prerequisites import Prerequisite
from tpu_standins.prerequisites import find as find_tools
from tpu_standins.processes import Processes


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
