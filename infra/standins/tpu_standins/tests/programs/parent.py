"""A parent process that a test kills at any moment: it starts one program after the other, and then waits.

`python -m tpu_standins.tests.programs.parent LOGS`
"""

import os
import signal
import sys
from pathlib import Path

from tpu_standins.interrupts import orderly_end
from tpu_standins.prerequisites import find, require
from tpu_standins.processes import Processes, Program, Says


def main(logs: Path) -> None:
    setpriv = require(find(os.environ)).setpriv
    with orderly_end(), Processes(setpriv=setpriv, logs=logs, environment=os.environ) as processes:
        for number in range(20):
            program = Program(
                name=f"child-{number}",
                command=("sh", "-c", "echo ready; exec sleep 600"),
                ready=Says("ready"),
                folder=logs,
            )
            processes.wait_until_ready(*processes.start(program))
        signal.pause()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
