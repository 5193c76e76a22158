"""`python -m infra.local.jobset --kubeconfig FILE`: JobSet for a cluster without one, until SIGTERM."""

import sys
from functools import partial
from typing import Any

from infra.local.clients.api import Api
from infra.local.clients.cache import watching
from infra.local.clients.installing import answering
from infra.local.clients.program import main, now
from infra.local.clients.reviews import review
from infra.local.clients.rounds import crew
from infra.local.clients.run import Program
from infra.local.jobset.controller import JobSets
from infra.local.jobset.installation import called, install_crd, is_installed_by_others
from infra.local.jobset.keys import JOBSET_NAME
from infra.local.jobset.manifests import WEBHOOKS, configurations
from infra.local.jobset.placement import Placement

_OF_JOBSETS = {"labelSelector": JOBSET_NAME}
_WATCHED = {"jobsets": {}, "jobs": {}, "pods": _OF_JOBSETS, "services": {}, "nodes": {}}
"""Kinds, with selectors."""


def run(api: Api) -> None:
    """Install what is needed, print `ready`, and control JobSets until interrupted."""
    if is_installed_by_others(api):
        print("This cluster has its own JobSet; ours is not started.", flush=True)
        return
    install_crd(api)
    with watching(api, _WATCHED) as objects:

        def answer(path: str, asked: dict[str, Any]) -> dict[str, Any] | None:
            webhook = WEBHOOKS.get(path)
            return review(partial(webhook, objects), asked) if webhook else None

        with answering(api, answer, configurations, lambda: called(api)):
            print("ready", flush=True)
            Program([JobSets(crew()).reconcile, Placement().reconcile], None, now).run(objects)


if __name__ == "__main__":
    sys.exit(main("infra.local.jobset", "JobSet", run))
