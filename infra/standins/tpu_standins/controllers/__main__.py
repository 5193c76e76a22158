"""`python -m tpu_standins.controllers NAME --kubeconfig FILE --folder FOLDER --webhook-port N --health-port N`.

Installs a controller in the cluster of a kubeconfig, and becomes its program, which ends by SIGTERM.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from tpu_standins.clients.installing import NotInstalled
from tpu_standins.controllers.catalogue import CONTROLLERS, PROGRAM, built, complete
from tpu_standins.controllers.installing import install
from tpu_standins.controllers.manifests import Place

KUBECONFIG = "KUBECONFIG"


def main() -> None:
    """Install, and replace this process."""
    parser = argparse.ArgumentParser(prog="python -m tpu_standins.controllers", description=__doc__)
    parser.add_argument("name", choices=[each.name for each in CONTROLLERS])
    parser.add_argument("--kubeconfig", type=Path, required=True, help="an administrator's")
    parser.add_argument("--folder", type=Path, required=True, help="for what the program reads; it is made")
    parser.add_argument("--webhook-port", type=int, required=True)
    parser.add_argument("--health-port", type=int, required=True)
    parser.add_argument("--configuration", type=Path, help="a file to read instead of the project's ConfigMap")
    asked = parser.parse_args()
    controller = next(each for each in CONTROLLERS if each.name == asked.name)
    build = built(controller, os.environ)
    if not complete(build):
        sys.exit(f"{controller} is not built: make kubernetes")
    place = Place(folder=asked.folder.resolve(), webhook_port=asked.webhook_port, health_port=asked.health_port)
    try:
        install(controller, build, asked.kubeconfig, place, asked.configuration)
    except NotInstalled as problem:
        sys.exit(f"{controller}: {problem}")
    environment = {**os.environ, KUBECONFIG: str(place.kubeconfig)}
    program = str(build / PROGRAM)
    os.execve(program, [program, f"--config={place.configuration}"], environment)  # noqa: S606 - this is the program


if __name__ == "__main__":
    main()
