"""`python -m infra.local.lws --kubeconfig FILE`: LeaderWorkerSet for a cluster without it, until SIGTERM."""

import sys
from typing import Any

from infra.local.clients.api import Api
from infra.local.clients.cache import watching
from infra.local.clients.errors import ApiError
from infra.local.clients.installing import answering, has_another, install, tried
from infra.local.clients.kinds import KINDS
from infra.local.clients.program import main, now
from infra.local.clients.reviews import review
from infra.local.clients.run import Program
from infra.local.lws.controller import WATCHED, LeaderWorkerSets
from infra.local.lws.manifests import CONFIGURATIONS, CRD, WEBHOOKS, configurations, crd

_KIND = KINDS["leaderworkersets"]
_PROBE: dict[str, Any] = {
    "metadata": {"name": "tpu-slices-local-probe", "namespace": "default"},
    "spec": {"leaderWorkerTemplate": {"workerTemplate": {"spec": {"containers": []}}}},
}
_NOT_SERVED = (404, 501)


def run(api: Api) -> None:
    """Install what is needed, print `ready`, and control LeaderWorkerSets until interrupted."""
    if has_another(api, CRD):
        print("This cluster has its own LeaderWorkerSet; ours is not started.", flush=True)
        return
    if not has_stateful_sets(api):
        print("LeaderWorkerSets need StatefulSets, which this API server has not: use a real one.", flush=True)
        return
    install(api, _KIND, crd(), manager=CONFIGURATIONS)
    with watching(api, WATCHED) as objects, answering(api, answer, configurations, lambda: called(api)):
        print("ready", flush=True)
        Program([LeaderWorkerSets().reconcile], None, now).run(objects)


def has_stateful_sets(api: Api) -> bool:
    """Return whether the API server has them: the embedded one has not. Raise ApiError."""
    try:
        api.list("statefulsets", limit="1")
    except ApiError as error:
        if error.code in _NOT_SERVED:
            return False
        raise
    return True


def answer(path: str, asked: dict[str, Any]) -> dict[str, Any] | None:
    """Answer an AdmissionReview; None for an unknown path."""
    decide = WEBHOOKS.get(path)
    return review(decide, asked) if decide else None


def called(api: Api) -> bool:
    """Return whether the webhooks are called: a new LeaderWorkerSet gets defaults."""
    made = tried(api, _KIND, _PROBE)
    return made is not None and "networkConfig" in made["spec"]


if __name__ == "__main__":
    sys.exit(main("infra.local.lws", "LeaderWorkerSet", run))
