"""What a cluster provides for the relay's pod: its applied manifests, and a file with a fresh ServiceAccount token.

The relay then has exactly the permissions locally that its role grants it when deployed.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import kubernetes
import yaml
from kubernetes.client import ApiException
from urllib3.exceptions import HTTPError

from infra.local.addresses import Addresses
from infra.local.kubeconfig import for_token_file, write_private
from infra.local.scheduler import repeated

logger = logging.getLogger(__name__)

MANIFEST = Path(__file__).parents[1] / "kubernetes" / "relay.yaml"
APPLIED = ("Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding")
"""The kinds that are applied. The Deployment is left out: the stack itself runs the relay."""
NAMESPACE, NAME = "tpu-slice-provisioner", "relay"
_SECONDS = 3600
_RENEW_EVERY = 0.8 * _SECONDS  # as in k8s.io/kubernetes pkg/kubelet/token

_client: Any = kubernetes.client  # untyped, although the package claims to be typed
_utils: Any = kubernetes.utils


def manifests() -> list[dict[str, Any]]:
    """Return the manifests that are applied."""
    return [each for each in yaml.safe_load_all(MANIFEST.read_text()) if each["kind"] in APPLIED]


@contextmanager
def relay_account(addresses: Addresses, renew_every: float = _RENEW_EVERY) -> Iterator[None]:
    """Apply the manifests, write the relay's kubeconfig, and renew its token at intervals until the block is left."""
    with _connected(addresses) as connection:

        def renew() -> None:
            try:
                write_private(addresses.relay_token, _token(connection))
            except (ApiException, HTTPError) as error:
                logger.warning("The relay's token was not renewed: %s", error)

        open_account(addresses)
        with repeated(renew, renew_every):
            yield


def open_account(addresses: Addresses) -> None:
    """Apply the manifests to a cluster that has none of them yet, and write the relay's kubeconfig."""
    with _connected(addresses) as connection:
        for manifest in manifests():
            _utils.create_from_dict(connection, manifest)
        write_private(addresses.relay_token, _token(connection))
    way = addresses.kubeconfig.read_text(encoding="utf-8")
    write_private(addresses.relay_kubeconfig, for_token_file(way, addresses.relay_token))


def _connected(addresses: Addresses) -> Any:
    """Return a Kubernetes client that bypasses any proxy the user has configured."""
    return _client.ApiClient(_client.Configuration(host=addresses.kubernetes, proxy=""))


def _token(connection: Any) -> str:
    core = _client.CoreV1Api(connection)
    spec = _client.V1TokenRequestSpec(audiences=[], expiration_seconds=_SECONDS)
    request = _client.AuthenticationV1TokenRequest(spec=spec)
    token: str = core.create_namespaced_service_account_token(NAME, NAMESPACE, request).status.token
    return token
