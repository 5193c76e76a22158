"""`python -m infra.local.kubelet --kubeconfig FILE`: the kubelets of the local GKE's nodes, until SIGTERM."""

import sys
import threading

from infra.local.clients.api import Api
from infra.local.clients.cache import watching
from infra.local.clients.labels import HOSTS
from infra.local.clients.program import main, now
from infra.local.clients.rounds import crew
from infra.local.clients.run import Program
from infra.local.kubelet.leases import Leases
from infra.local.kubelet.pace import Pace
from infra.local.kubelet.pods import Pods

_WATCHED = {"nodes": {"labelSelector": HOSTS}, "pods": {"fieldSelector": "spec.nodeName!="}, "jobs": {}}
"""Kinds, with selectors."""


def run(api: Api) -> None:
    """Print `ready`, and do what kubelets do until interrupted. Raise ApiError if nobody answers at first."""
    api.list("nodes", limit="1")
    with watching(api, _WATCHED) as objects:
        print("ready", flush=True)
        leases = Program([Leases(crew()).reconcile], Pace(), now)
        threading.Thread(target=leases.run, args=(objects,), daemon=True).start()
        Program([Pods(crew()).reconcile], Pace(), now).run(objects)


if __name__ == "__main__":
    sys.exit(main("infra.local.kubelet", "The kubelets", run))
