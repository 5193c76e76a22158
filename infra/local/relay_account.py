"""What a cluster provides for the relay's pod: its applied manifests, and a file with a fresh ServiceAccount token.

The relay then has exactly the permissions locally that it has when deployed, as its roles and admission policies say.
"""

import logging
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path

import yaml

from infra.kubernetes.overlay import NAMESPACE, Image, Relay, account_of, policy_of, write
from infra.local.addresses import Addresses
from infra.local.scheduler import repeated
from tpu_slices.domain.model.clusters import PodsOf
from tpu_slices.domain.model.gangs import Gangs
from tpu_slices.domain.model.slices import ClusterId
from tpu_standins.clients.api import Api
from tpu_standins.clients.errors import ApiError
from tpu_standins.clients.installing import NotInstalled, install
from tpu_standins.clients.kinds import KINDS
from tpu_standins.clients.labels import marked
from tpu_standins.clients.objects import Object
from tpu_standins.kubeconfig import for_token_file, write_private
from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.processes import ProgramFailed

logger = logging.getLogger(__name__)

APPLIED = {kind.name: plural for plural, kind in KINDS.items()}
LEFT_OUT = ("Deployment", "NetworkPolicy")
"""The kinds that are not applied: the stack itself runs the relay, outside the cluster."""
NOT_EVERYWHERE = tuple(
    f"{kind}AdmissionPolicy{part}" for kind in ("Mutating", "Validating") for part in ("", "Binding")
)
"""The kinds that are applied where the API server has them: the embedded one does not."""
UNNEEDED = Image("unneeded", "unneeded")
MANAGER = "tpu-slices-local"
"""The field manager of what the stack applies."""
_SECONDS = 3600
_RENEW_EVERY = 0.8 * _SECONDS  # as in k8s.io/kubernetes pkg/kubelet/token


@cache
def manifests(
    cluster: str, *, hosts_in: str = "", serve: tuple[PodsOf, ...] = (), gangs: Gangs = Gangs.NONE
) -> tuple[Object, ...]:
    """Return the manifests that are applied for a cluster, as the build's are made, with the labels of what is ours."""
    relay = Relay(
        cluster=ClusterId(cluster),
        project="unneeded",
        version="local",
        image=UNNEEDED,
        hosts_in=hosts_in,
        serve=serve,
    )
    with tempfile.TemporaryDirectory() as folder:
        write(relay, Path(folder))
        built = subprocess.run(["kubectl", "kustomize", folder], capture_output=True, text=True, check=True)
    documents = (*yaml.safe_load_all(built.stdout), *yaml.safe_load_all(policy_of(serve, gangs)))
    return tuple(marked(each) for each in documents if each["kind"] not in LEFT_OUT)


@contextmanager
def relay_account(addresses: Addresses, renew_every: float = _RENEW_EVERY) -> Iterator[None]:
    """Apply the manifests, write the relay's kubeconfig, and renew its token at intervals until the block is left."""
    open_account(addresses)
    with renewed(addresses, account_of(addresses.cluster_id), addresses.relay_token, renew_every):
        yield


@contextmanager
def renewed(addresses: Addresses, account: str, token: Path, renew_every: float = _RENEW_EVERY) -> Iterator[None]:
    """Renew the token of a ServiceAccount at intervals until the block is left."""
    with closing(Api.of(addresses.kubeconfig)) as api:

        def renew() -> None:
            try:
                write_private(token, token_of(api, account))
            except ApiError as error:
                logger.warning("The token of %s was not renewed: %s", account, str(error))

        with repeated(renew, renew_every):
            yield


def open_account(addresses: Addresses, *, within: float = PATIENCE_SECONDS) -> None:
    """Apply the manifests, whatever there is of them, and write the relay's kubeconfig.

    Raises ApiError, or ProgramFailed if the API server does not serve a kind of theirs within so many seconds.
    """
    with closing(Api.of(addresses.kubeconfig)) as api:
        told = {"serve": addresses.serve, "gangs": addresses.gangs}
        for manifest in manifests(addresses.cluster_id, hosts_in=addresses.hosts_in, **told):
            _apply(api, manifest, within)
        write_private(addresses.relay_token, token_of(api, account_of(addresses.cluster_id)))
    way = addresses.proxy_kubeconfig.read_text(encoding="utf-8")
    write_private(addresses.relay_kubeconfig, for_token_file(way, addresses.relay_token))


def _apply(api: Api, manifest: Object, within: float) -> None:
    plural = APPLIED[manifest["kind"]]
    if manifest["kind"] in NOT_EVERYWHERE and not api.serves(plural):
        return
    if manifest["kind"] != "CustomResourceDefinition":
        api.apply(plural, manifest, manager=MANAGER)
        return
    try:
        install(api, KINDS[manifest["spec"]["names"]["plural"]], manifest, manager=MANAGER, within=within)
    except NotInstalled as problem:
        raise ProgramFailed(str(problem)) from problem


def token_of(api: Api, account: str) -> str:
    """Return a new token of a ServiceAccount. Raise ApiError."""
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"audiences": [], "expirationSeconds": _SECONDS},
    }
    answer = api.call("POST", KINDS["serviceaccounts"].path(NAMESPACE, account, "token"), request)
    token: str = answer["status"]["token"]
    return token
