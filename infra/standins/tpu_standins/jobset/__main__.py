"""`python -m tpu_standins.jobset --kubeconfig FILE`: JobSet for the embedded API server, until SIGTERM."""

import sys
from functools import partial

from tpu_standins.clients.api import Api
from tpu_standins.clients.cache import watching
from tpu_standins.clients.installing import answering
from tpu_standins.clients.objects import Object
from tpu_standins.clients.program import main, now
from tpu_standins.clients.reviews import review
from tpu_standins.clients.rounds import crew
from tpu_standins.clients.run import Program
from tpu_standins.jobset.controller import JobSets
from tpu_standins.jobset.installation import WEBHOOKS, called, configurations, install_crd
from tpu_standins.jobset.keys import JOBSET_NAME

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
    sys.exit(main("tpu_standins.jobset", "JobSet", run))
