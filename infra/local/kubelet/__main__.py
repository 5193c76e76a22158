"""`python -m infra.local.kubelet --kubeconfig FILE`: the kubelets of the local GKE's nodes, until SIGTERM."""

import argparse
import logging
import sys
from datetime import UTC, datetime
from pathlib import Path

from kubernetes.config.config_exception import ConfigException

from infra.local.clients.api import Api
from infra.local.clients.cache import NotListed, watching
from infra.local.clients.errors import ApiError
from infra.local.clients.run import Program
from infra.local.interrupts import orderly_end
from infra.local.kubelet.keys import NODES
from infra.local.kubelet.leases import Leases
from infra.local.kubelet.pace import Pace
from infra.local.kubelet.pods import Pods

_WATCHED = {"nodes": {"labelSelector": NODES}, "pods": {"fieldSelector": "spec.nodeName!="}}
"""Kinds, with selectors."""


def run(api: Api) -> None:
    """Say `ready`, and do what kubelets do until interrupted."""
    with watching(api, _WATCHED) as objects:
        print("ready", flush=True)
        Program([Leases().reconcile, Pods().reconcile], Pace(), lambda: datetime.now(UTC)).run(objects)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m infra.local.kubelet", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True, help="of the cluster")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    try:
        with orderly_end():
            run(Api.of(arguments.kubeconfig))
    except (ApiError, ConfigException, NotListed) as problem:
        print(f"The kubelets cannot run in this cluster: {problem}.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
