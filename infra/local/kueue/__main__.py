"""`python -m infra.local.kueue --kubeconfig FILE`: queues for a cluster without Kueue, until SIGTERM."""

import sys
from datetime import UTC, datetime

from infra.local.clients.api import Api
from infra.local.clients.cache import watching
from infra.local.clients.installing import called, has_another, install, wait
from infra.local.clients.kinds import KINDS
from infra.local.clients.program import main
from infra.local.clients.run import Program
from infra.local.cluster.certificates import certificates
from infra.local.jobset.serving import HOST, serving
from infra.local.kueue.controller import WATCHED, reconcile
from infra.local.kueue.installation import NAME, configuration, definitions, suspend, suspends


def _now() -> datetime:
    return datetime.now(UTC)


def run(api: Api) -> None:
    """Install what is needed, say `ready`, and admit JobSets until interrupted."""
    if has_another(api, "clusterqueues.kueue.x-k8s.io"):
        print("This cluster has its own Kueue; ours is not started.", flush=True)
        return
    for plural, definition in definitions().items():
        install(api, KINDS[plural], definition, manager=NAME)
    own = certificates(HOST, _now())
    with serving(0, own.context(), suspend) as address, watching(api, WATCHED) as objects:
        webhooks = {"mutatingwebhookconfigurations": configuration(address, own.authority)}
        with called(api, webhooks, manager=NAME):
            wait(lambda: suspends(api), "the API server does not call our webhook")
            print("ready", flush=True)
            Program([reconcile], None, _now).run(objects)


if __name__ == "__main__":
    sys.exit(main("infra.local.kueue", "Kueue", run))
