"""JobSet in a cluster: the CRD is installed and stays, the webhooks only as long as somebody serves them."""

from typing import Any

from infra.local.clients.api import Api
from infra.local.clients.installing import has_another, install, tried
from infra.local.clients.kinds import KINDS
from infra.local.jobset.manifests import CRD, crd

MANAGER = "tpu-slices-local-jobset"
"""The field manager of what we apply."""

_KIND = KINDS["jobsets"]
_PROBE: dict[str, Any] = {
    "metadata": {"name": "tpu-slices-local-probe", "namespace": "default"},
    "spec": {"replicatedJobs": [{"name": "one", "template": {"spec": {"template": {"spec": {"containers": []}}}}}]},
}


def is_installed_by_others(api: Api) -> bool:
    """Return whether the cluster has a JobSet that is not ours. Raise ApiError."""
    return has_another(api, CRD)


def install_crd(api: Api) -> None:
    """Install our CRD, or bring it up to date, and wait until JobSets are served. Raise ApiError or NotInstalled."""
    install(api, _KIND, crd(), manager=MANAGER)


def called(api: Api) -> bool:
    """Return whether the webhooks are called: a new JobSet gets defaults, and one that the schema admits is refused."""
    made = tried(api, _KIND, _PROBE)
    refused = _PROBE | {"spec": _PROBE["spec"] | {"managedBy": "nobody"}}
    return made is not None and "startupPolicy" in made["spec"] and tried(api, _KIND, refused) is None
