"""The command line that local clients share: a kubeconfig, `ready`, and a prompt end."""

import argparse
import logging
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from kubernetes.config.config_exception import ConfigException

from tpu_standins.clients.api import Api
from tpu_standins.clients.cache import NotListed
from tpu_standins.clients.errors import ApiError
from tpu_standins.clients.installing import NotInstalled
from tpu_standins.interrupts import orderly_end


def now() -> datetime:
    return datetime.now(UTC)


def main(module: str, name: str, run: Callable[[Api], None]) -> int:
    """Run `python -m MODULE` for the kubeconfig's cluster until SIGTERM or Ctrl-C; return the exit code.

    `name` is the subject of what people are told if it cannot run.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {module}")
    parser.add_argument("--kubeconfig", type=Path, required=True, help="of the cluster")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("urllib3").setLevel(logging.ERROR)  # what it retries is told if it fails again
    try:
        with orderly_end():
            run(Api.of(arguments.kubeconfig))
    except (ApiError, ConfigException, NotListed, NotInstalled) as problem:
        print(f"{name} cannot run in this cluster: {problem}.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0
