"""JobSet in a cluster: the CRD is installed and stays, the webhooks only as long as somebody serves them."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from infra.local.clients.api import Api
from infra.local.clients.errors import ApiError
from infra.local.clients.kinds import KINDS
from infra.local.jobset.manifests import CONFIGURATIONS, CRD, OURS, configurations, crd

MANAGER = "tpu-slices-local-jobset"
"""The field manager of what we apply."""

_PATIENCE_SECONDS = 30.0
_PAUSE_SECONDS = 0.05
_PROBE: dict[str, Any] = {
    "metadata": {"name": "tpu-slices-local-probe", "namespace": "default"},
    "spec": {"replicatedJobs": [{"name": "one", "template": {"spec": {"template": {"spec": {"containers": []}}}}}]},
}


class NotInstalled(Exception):
    """The API server does not serve JobSets, or does not call the webhooks; says why, for the user."""


def is_installed_by_others(api: Api) -> bool:
    """Return whether the cluster has a JobSet that is not ours. Raise ApiError."""
    try:
        found = api.get("customresourcedefinitions", None, CRD)
    except ApiError as error:
        if error.code == 404:
            return False
        raise
    labels = found["metadata"].get("labels") or {}
    return not OURS.items() <= labels.items()


def install_crd(api: Api) -> None:
    """Install our CRD, or bring it up to date, and wait until JobSets are served. Raise ApiError or NotInstalled.

    Kubernetes' controller manager learns of a CRD at once if it starts later, else within 30 s: until then nothing
    that a JobSet owns is deleted with it.
    """
    api.apply("customresourcedefinitions", crd(), manager=MANAGER)
    _wait(lambda: _serves(api), "the API server does not serve JobSets")


def remove_crd(api: Api) -> None:
    """Remove our CRD, with all JobSets. Raise ApiError."""
    with suppress(ApiError) if is_installed_by_others(api) else _unless_missing():
        api.delete("customresourcedefinitions", None, CRD)


@contextmanager
def webhooks(api: Api, address: str, authority: bytes) -> Iterator[None]:
    """Have the API server call the webhooks at this address within the block. Raise ApiError or NotInstalled.

    What is left of a predecessor that was killed is replaced.
    """
    wanted = configurations(address, authority)
    try:
        for plural, configuration in wanted.items():
            api.apply(plural, configuration, manager=MANAGER)
        _wait(lambda: _defaults(api) and _refuses(api), "the API server does not call JobSet's webhooks")
        yield
    finally:
        for plural in wanted:
            with _unless_missing():
                api.delete(plural, None, CONFIGURATIONS)


@contextmanager
def _unless_missing() -> Iterator[None]:
    try:
        yield
    except ApiError as error:
        if error.code != 404:
            raise


def _wait(done: Callable[[], bool], problem: str) -> None:
    """Wait until it is done. While the server still calls a predecessor's webhooks, it answers with errors."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not _passes(done):
        if time.monotonic() > deadline:
            raise NotInstalled(f"{problem}, although it has been told to {_PATIENCE_SECONDS:g} s ago")
        time.sleep(_PAUSE_SECONDS)


def _passes(done: Callable[[], bool]) -> bool:
    try:
        return done()
    except ApiError as error:
        if error.passes:
            return False
        raise


def _serves(api: Api) -> bool:
    try:
        api.list("jobsets", limit="1")
    except ApiError as error:
        if error.code == 404:
            return False
        raise
    return True


def _defaults(api: Api) -> bool:
    """Return whether a new JobSet gets the webhook's defaults."""
    made = _tried(api, _PROBE)
    return made is not None and "startupPolicy" in made["spec"]


def _refuses(api: Api) -> bool:
    """Return whether the webhook refuses a JobSet that the schema admits."""
    return _tried(api, _PROBE | {"spec": _PROBE["spec"] | {"managedBy": "nobody"}}) is None


def _tried(api: Api, jobset: dict[str, Any]) -> dict[str, Any] | None:
    """Return what would become of a new JobSet; None if it would be refused."""
    kind = KINDS["jobsets"]
    body = {"apiVersion": kind.api, "kind": kind.name} | jobset
    try:
        return api.call("POST", kind.path("default"), body, query={"dryRun": "All"})
    except ApiError as error:
        if error.code == 422:
            return None
        raise
