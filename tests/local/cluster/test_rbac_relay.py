"""The relay's role compared with the relay's requests: it allows all of them, and contains no unused verb."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kubernetes
import pytest
from kubernetes.client import ApiException

from infra.local.kubeconfig import for_token_file
from infra.local.relay_account import NAME, NAMESPACE, manifests
from relay import legacy_provisioner
from relay.cluster import Cluster, sources
from relay.connection import Connection
from relay.objects import JobSetName, PoolKey
from tests.local.cluster.served import Served, connected, serving
from tpu_slices.domain.model.slices import SliceId
from tpu_slices.ports.errors import Permanent, Temporary

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket, pytest.mark.timeout(60)]

client: Any = kubernetes.client  # untyped, although the package claims to be typed
utils: Any = kubernetes.utils
ROLE: dict[str, Any] = next(each for each in manifests() if each["kind"] == "ClusterRole")
EVENT = {
    "metadata": {"name": "one", "namespace": "default"},
    "involvedObject": {"kind": "Pod", "name": "one", "namespace": "default"},
    "reason": "Testing",
    "message": "so",
    "type": "Normal",
}
PATCH = {"metadata": {"labels": {"marked": "true"}}}

CALLS: Mapping[str, Callable[[Cluster], object]] = {
    "jobset": lambda cluster: cluster.jobset(JobSetName("default", "llama")),
    "claim": lambda cluster: cluster.claim("default", "data"),
    "volume": lambda cluster: cluster.volume("data"),
    "deployment": lambda cluster: cluster.deployment(*legacy_provisioner.THEIRS),
    "our own deployment": lambda cluster: cluster.deployment(*legacy_provisioner.OURS),
    "post": lambda cluster: cluster.post(EVENT),
    "renew": lambda cluster: cluster.renew(EVENT),
    "nodes_of": lambda cluster: cluster.nodes_of(PoolKey(SliceId("tpu-llama-0-aaaaaaaaaaaaa"), 1)),
    "leaders_on": lambda cluster: cluster.leaders_on("host"),
    "patch_node": lambda cluster: cluster.patch_node("host", PATCH),
}
"""One of each kind of the relay's calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """The smallest unit that a role can grant."""

    group: str
    resource: str
    verb: str
    name: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, [self.verb, self.resource, self.name]))

    def rule(self) -> dict[str, Any]:
        named = {"resourceNames": [self.name]} if self.name else {}
        return {"apiGroups": [self.group], "resources": [self.resource], "verbs": [self.verb]} | named


PERMISSIONS = [
    Permission(group=group, resource=resource, verb=verb, name=name)
    for rule in ROLE["rules"]
    for group in rule["apiGroups"]
    for resource in rule["resources"]
    for verb in rule["verbs"]
    for name in rule.get("resourceNames", [""])
]


class Watched(Connection):
    """The relay's connection; it records refusals."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        super().__init__(environment)
        self.asked = 0
        self.refused: list[str] = []

    def call_api(self, *arguments: Any, **more: Any) -> Any:
        response = super().call_api(*arguments, **more)
        self.asked += 1
        if response.status == 403:
            self.refused.append(response.read().decode())
        return response


@dataclass(frozen=True, slots=True)
class Stage:
    served: Served
    kubeconfig: Path

    def role(self, *rules: dict[str, Any]) -> None:
        with connected(self.served) as connection:
            client.RbacAuthorizationV1Api(connection).patch_cluster_role(
                ROLE["metadata"]["name"], {"rules": list(rules)}, _content_type="application/merge-patch+json"
            )

    def refusals(self) -> list[str]:
        """Make every request that the relay makes; return those that were refused as forbidden."""
        with Watched({"KUBECONFIG": str(self.kubeconfig)}) as connection:
            for source in sources(connection):
                _fetch(source.fetch)
                _fetch(source.fetch, watch=True, timeout_seconds=1)
            for call in CALLS.values():
                # A missing claim, or an API that is not served, is not a refusal.
                with suppress(Temporary, Permanent):
                    call(Cluster(connection))
            connection.rest_client.pool_manager.clear()
            assert connection.asked >= len(sources(connection)) * 2 + len(CALLS)
            refused: list[str] = connection.refused
            return refused


def _fetch(fetch: Callable[..., Any], **more: Any) -> None:
    with suppress(ApiException):
        fetch(**more, _preload_content=False, _request_timeout=5).close()


@contextmanager
def applied(served: Served, folder: Path) -> Iterator[Stage]:
    """Apply the relay's manifests, and provide a token as in its pod."""
    with connected(served) as connection:
        for manifest in manifests():
            utils.create_from_dict(connection, manifest)
    token = served.kubectl("create", "token", NAME, "--namespace", NAMESPACE)
    (folder / "token").write_text(token.out.strip())
    kubeconfig = folder / "relay.kubeconfig"
    kubeconfig.write_text(for_token_file(served.kubeconfig.read_text(), folder / "token"))
    yield Stage(served, kubeconfig)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("relay")
    with serving(folder, "--no-controllers") as served, applied(served, folder) as prepared:
        yield prepared


def test_every_call_of_the_relay_is_tried_here() -> None:
    public = {name for name in vars(Cluster) if not name.startswith("_")}
    assert public == {name.rpartition(" ")[2] for name in CALLS}


def test_the_role_allows_all_that_the_relay_does(stage: Stage) -> None:
    stage.role(*ROLE["rules"])
    assert stage.refusals() == []


@pytest.mark.parametrize("missing", PERMISSIONS, ids=str)
def test_without_any_one_permission_the_relay_is_refused(stage: Stage, missing: Permission) -> None:
    stage.role(*(each.rule() for each in PERMISSIONS if each != missing))
    refused = stage.refusals()
    said = f'cannot {missing.verb} resource \\"{missing.resource}\\" in API group \\"{missing.group}\\"'
    assert refused
    assert all(said in each and f"system:serviceaccount:{NAMESPACE}:{NAME}" in each for each in refused)


def test_without_the_role_the_relay_may_do_nothing(stage: Stage) -> None:
    stage.role()
    with connected(stage.served) as connection:
        asked = len(sources(connection)) * 2
    assert len(stage.refusals()) == asked + len(CALLS)


def test_a_token_that_another_takes_the_place_of_in_its_file_is_picked_up(stage: Stage) -> None:
    stage.role(*ROLE["rules"])
    served, token = stage.served, stage.kubeconfig.with_name("token")
    with Connection({"KUBECONFIG": str(stage.kubeconfig)}) as connection:
        cluster = Cluster(connection)
        assert cluster.jobset(JobSetName("default", "llama")) is None
        served.kubectl("delete", "serviceaccount", NAME, "--namespace", NAMESPACE)
        with pytest.raises(Temporary, match="401"):
            cluster.jobset(JobSetName("default", "llama"))
        served.kubectl("create", "serviceaccount", NAME, "--namespace", NAMESPACE)
        token.write_text(served.kubectl("create", "token", NAME, "--namespace", NAMESPACE).out.strip())
        assert cluster.jobset(JobSetName("default", "llama")) is None
        connection.rest_client.pool_manager.clear()
