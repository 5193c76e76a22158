"""`python -m tpu_standins.kubelet --kubeconfig FILE`: the kubelets of the local GKE's nodes, until SIGTERM."""

import sys
import threading

from tpu_standins.clients.api import Api
from tpu_standins.clients.cache import watching
from tpu_standins.clients.labels import HOSTS
from tpu_standins.clients.program import main, now
from tpu_standins.clients.rounds import crew
from tpu_standins.clients.run import Program
from tpu_standins.kubelet.leases import Leases
from tpu_standins.kubelet.pace import Pace
from tpu_standins.kubelet.pods import Pods

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
    sys.exit(main("tpu_standins.kubelet", "The kubelets", run))
