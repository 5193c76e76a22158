"""What a cluster provides for the relay's pod: its applied manifests, and a file with a fresh ServiceAccount token.

The relay then has exactly the permissions locally that its role grants it when deployed.
"""

import logging
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import yaml

from infra.local.addresses import Addresses
from infra.local.clients.api import Api
from infra.local.clients.errors import ApiError
from infra.local.clients.kinds import KINDS
from infra.local.clients.labels import marked
from infra.local.kubeconfig import for_token_file, write_private
from infra.local.scheduler import repeated

logger = logging.getLogger(__name__)

MANIFEST = Path(__file__).parents[1] / "kubernetes" / "relay.yaml"
APPLIED = {kind.name: plural for plural, kind in KINDS.items()}
LEFT_OUT = ("Deployment",)
"""The kinds that are not applied: the stack itself runs the relay."""
NAMESPACE, NAME = "tpu-slice-provisioner", "relay"
MANAGER = "tpu-slices-local"
"""The field manager of what the stack applies."""
_SECONDS = 3600
_RENEW_EVERY = 0.8 * _SECONDS  # as in k8s.io/kubernetes pkg/kubelet/token


def manifests() -> list[dict[str, Any]]:
    """Return the manifests that are applied, with the labels of what is ours."""
    found = yaml.safe_load_all(MANIFEST.read_text())
    return [marked(each) for each in found if each["kind"] not in LEFT_OUT]


@contextmanager
def relay_account(addresses: Addresses, renew_every: float = _RENEW_EVERY) -> Iterator[None]:
    """Apply the manifests, write the relay's kubeconfig, and renew its token at intervals until the block is left."""
    with closing(Api.of(addresses.kubeconfig)) as api:

        def renew() -> None:
            try:
                write_private(addresses.relay_token, _token(api))
            except ApiError as error:
                logger.warning("The relay's token was not renewed: %s", str(error))

        open_account(addresses)
        with repeated(renew, renew_every):
            yield


def open_account(addresses: Addresses) -> None:
    """Apply the manifests, whatever there is of them, and write the relay's kubeconfig. Raises ApiError."""
    with closing(Api.of(addresses.kubeconfig)) as api:
        for manifest in manifests():
            api.apply(APPLIED[manifest["kind"]], manifest, manager=MANAGER)
        write_private(addresses.relay_token, _token(api))
    way = addresses.proxy_kubeconfig.read_text(encoding="utf-8")
    write_private(addresses.relay_kubeconfig, for_token_file(way, addresses.relay_token))


def _token(api: Api) -> str:
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"audiences": [], "expirationSeconds": _SECONDS},
    }
    answer = api.call("POST", KINDS["serviceaccounts"].path(NAMESPACE, NAME, "token"), request)
    token: str = answer["status"]["token"]
    return token
