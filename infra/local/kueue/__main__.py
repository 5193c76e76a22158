"""`python -m infra.local.kueue --kubeconfig FILE`: queues for a cluster without Kueue, until SIGTERM."""

import sys

from infra.local.clients.api import Api
from infra.local.clients.cache import watching
from infra.local.clients.events import Recorder
from infra.local.clients.installing import answering, has_another, install
from infra.local.clients.program import main, now
from infra.local.clients.run import Program
from infra.local.kueue.controller import WATCHED, reconcile
from infra.local.kueue.installation import NAME, configurations, definitions, suspend, suspends


def run(api: Api) -> None:
    """Install what is needed, say `ready`, and admit JobSets until interrupted."""
    if has_another(api, "clusterqueues.kueue.x-k8s.io"):
        print("This cluster has its own Kueue; ours is not started.", flush=True)
        return
    for kind, definition in definitions():
        install(api, kind, definition, manager=NAME)
    with watching(api, WATCHED) as objects, answering(api, suspend, configurations, lambda: suspends(api)):
        print("ready", flush=True)
        Program([reconcile], Recorder("kueue"), now).run(objects)


if __name__ == "__main__":
    sys.exit(main("infra.local.kueue", "Kueue", run))
