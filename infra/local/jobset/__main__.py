"""`python -m infra.local.jobset --kubeconfig FILE`: JobSet for a cluster without one, until SIGTERM."""

import argparse
import logging
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kubernetes.config.config_exception import ConfigException

from infra.local.certificates import certificates
from infra.local.clients.api import Api
from infra.local.clients.cache import NotListed, watching
from infra.local.clients.errors import ApiError
from infra.local.clients.run import Program
from infra.local.interrupts import orderly_end
from infra.local.jobset.controller import JobSets
from infra.local.jobset.installation import NotInstalled, install_crd, is_installed_by_others, webhooks
from infra.local.jobset.keys import JOBSET_NAME
from infra.local.jobset.manifests import WEBHOOKS
from infra.local.jobset.placement import Placement
from infra.local.jobset.reviews import review
from infra.local.jobset.serving import HOST, serving

_OF_JOBSETS = {"labelSelector": JOBSET_NAME}
_WATCHED = {"jobsets": {}, "jobs": {}, "pods": _OF_JOBSETS, "services": {}, "nodes": {}}
"""Kinds, with selectors."""


def _now() -> datetime:
    return datetime.now(UTC)


def run(api: Api) -> None:
    """Install what is needed, say `ready`, and control JobSets until interrupted."""
    if is_installed_by_others(api):
        print("This cluster has its own JobSet; ours is not started.", flush=True)
        return
    install_crd(api)
    own = certificates(HOST, _now())
    with watching(api, _WATCHED) as objects:

        def answer(path: str, asked: dict[str, Any]) -> dict[str, Any] | None:
            webhook = WEBHOOKS.get(path)
            return review(webhook, objects, asked) if webhook else None

        with serving(0, own.context(), answer) as address, webhooks(api, address, own.authority):
            print("ready", flush=True)
            Program([JobSets().reconcile, Placement().reconcile], None, _now).run(objects)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m infra.local.jobset", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True, help="of the cluster")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    try:
        with orderly_end():
            run(Api.of(arguments.kubeconfig))
    except (ApiError, ConfigException, NotListed, NotInstalled) as problem:
        print(f"JobSet cannot run in this cluster: {problem}.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
