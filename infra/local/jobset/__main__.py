"""`python -m infra.local.jobset --kubeconfig FILE`: JobSet for the embedded API server, until SIGTERM."""

import sys
from functools import partial

from infra.local.clients.api import Api
from infra.local.clients.cache import watching
from infra.local.clients.installing import answering
from infra.local.clients.objects import Object
from infra.local.clients.program import main, now
from infra.local.clients.reviews import review
from infra.local.clients.rounds import crew
from infra.local.clients.run import Program
from infra.local.jobset.controller import JobSets
from infra.local.jobset.installation import WEBHOOKS, called, configurations, install_crd
from infra.local.jobset.keys import JOBSET_NAME

_WATCHED = {"jobsets": {}, "jobs": {}, "pods": {"labelSelector": JOBSET_NAME}, "services": {}, "nodes": {}}
"""Kinds, with selectors."""


def run(api: Api) -> None:
    """Install what is needed, print `ready`, and control JobSets until interrupted."""
    install_crd(api)
    with watching(api, _WATCHED) as objects:

        def answer(path: str, asked: Object) -> Object | None:
            return review(partial(WEBHOOKS[path], objects), asked) if path in WEBHOOKS else None

        with answering(api, answer, configurations, lambda: called(api)):
            print("ready", flush=True)
            Program([JobSets(crew()).reconcile], None, now).run(objects)


if __name__ == "__main__":
    sys.exit(main("infra.local.jobset", "JobSet", run))
