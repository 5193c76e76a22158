"""The relay's roles compared with the relay's requests: they allow all of them, and contain no unused verb."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from kubernetes.client import ApiException

from infra.kubernetes.overlay import NAMESPACE, account_of
from infra.local.relay_account import APPLIED, manifests
from relay.cluster import Cluster as Calls
from relay.cluster import sources
from relay.connection import Connection
from relay.mirror.calls import MirrorCalls, NotInstalled
from relay.mirror.objects import MIRRORS, PLURALS
from relay.notices import legacy_provisioner
from relay.notices.gating import ANNOTATED
from relay.notices.pinning import POD
from relay.objects import Kind, Known, PoolKey, WorkloadName
from relay.watch import Source
from tests.builders import an_owner
from tests.cluster.accounts import token_of
from tests.cluster.asking import APPLY, LIVE, Json, done, path
from tests.cluster.builders import event
from tests.cluster.servers import PATIENCE, Cluster
from tests.infra.relay.manifests import the
from tpu_slices.domain.model.slices import ClaimId, OwnerKind
from tpu_slices.domain.records.mirror import MirrorKind
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_standins.clients.kinds import KINDS
from tpu_standins.kubeconfig import for_token_file
from tpu_standins.testing.waiting import until

pytestmark = LIVE

CLUSTER = "demo"
NAME = account_of(CLUSTER)
ROLES: Mapping[str, Json] = {
    plural: the(KINDS[plural].name, name=name)
    for plural, name in (("clusterroles", "tpu-slice-provisioner-relay"), ("roles", "relay"))
}
RBAC = ("Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
EVENT = event("one", "default")


def _listed(kind: MirrorKind, calls: MirrorCalls) -> object:
    return [*calls.objects(kind)]


def _applied(kind: MirrorKind, calls: MirrorCalls) -> object:
    return calls.apply(kind, MIRRORED)


def _removed(kind: MirrorKind, calls: MirrorCalls) -> None:
    calls.remove(kind, "default", "one")


def _reads(kind: OwnerKind) -> Callable[[Calls], object]:
    return lambda calls: calls.workload(an_owner("llama", namespace="default", kind=kind))


CALLS: Mapping[str, Callable[[Calls], object]] = {
    **{f"a {kind} as workload": _reads(kind) for kind in OwnerKind if not (kind.declares or kind.is_spare)},
    "volume_claim": lambda calls: calls.volume_claim("default", "data"),
    "volume": lambda calls: calls.volume("data"),
    "deployment": lambda calls: calls.deployment(*legacy_provisioner.TPU_PROVISIONER.place),
    "our own deployment": lambda calls: calls.deployment(*legacy_provisioner.OURS),
    "has_policy": lambda calls: calls.has_policy(),
    "tried": lambda calls: calls.tried(POD),
    "tried_jobset": lambda calls: calls.tried_jobset(ANNOTATED),
    "replica_set": lambda calls: calls.replica_set("default", "web-1"),
    "scale_ups": lambda calls: calls.scale_ups("default"),
    "post": lambda calls: calls.post(EVENT),
    "renew": lambda calls: calls.renew(EVENT),
    "nodes_of": lambda calls: calls.nodes_of(PoolKey(ClaimId("tpu-llama-0-aaaaaaaaaaaaa"), 1)),
    "workload_named": lambda calls: calls.workload_named(WorkloadName("default", "llama")),
    "chip_pods_on": lambda calls: calls.chip_pods_on("host", exactly=True),
    "open_pod": lambda calls: calls.open_pod("default", "llama-0", "u-1"),
    "patch_node": lambda calls: calls.patch_node("host", {"metadata": {"labels": {"marked": "true"}}}),
}
"""One of each kind of the relay's calls."""
MIRRORED = {"metadata": {"namespace": "default", "name": "one"}}
MIRROR_CALLS: Mapping[str, Callable[[MirrorCalls], object]] = {
    **{f"objects {kind}": partial(_listed, kind) for kind in MirrorKind},
    **{f"apply {kind}": partial(_applied, kind) for kind in MirrorKind},
    **{f"remove {kind}": partial(_removed, kind) for kind in MirrorKind},
    "confirm": lambda calls: calls.confirm(MIRRORED),
}
"""One of each kind of the calls that keep the mirror."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """The smallest unit that a role can grant; `role` is the plural of the role's kind."""

    role: str
    group: str
    resource: str
    verb: str
    name: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, [self.verb, self.resource, self.name]))

    def rule(self) -> Json:
        named = {"resourceNames": [self.name]} if self.name else {}
        return {"apiGroups": [self.group], "resources": [self.resource], "verbs": [self.verb]} | named

    def missed_by(self, refused: str) -> bool:
        """Return whether a refusal says that the relay's account lacks this; it begins with the object's name."""
        who = f"system:serviceaccount:{NAMESPACE}:{NAME}"
        what = f'cannot {self.verb} resource \\"{self.resource}\\" in API group \\"{self.group}\\"'
        return who in refused and what in refused and self.name in refused.partition("is forbidden")[0]


PERMISSIONS = [
    Permission(role=plural, group=group, resource=resource, verb=verb, name=name)
    for plural, role in ROLES.items()
    for rule in role["rules"]
    for group in rule["apiGroups"]
    for resource in rule["resources"]
    for verb in rule["verbs"]
    for name in rule.get("resourceNames", [""])
]


CREATED = {f"create {plural}" for plural in (*PLURALS.values(), MIRRORS)}
"""An apply asks for these only where it may patch, and nothing is there yet: see tests/kubernetes/test_mirror.py."""


class Watched(Connection):
    """The relay's connection; it records refusals."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        super().__init__(environment)
        self.asked = 0
        self.refused: list[str] = []

    def call_api(self, *arguments: Any, **more: Any) -> Any:
        self.asked += 1
        response = super().call_api(*arguments, **more)
        if response.status == 403:
            self.refused.append(response.read().decode())
        return response


@dataclass(frozen=True, slots=True)
class Stage:
    """The relay's account on an API server, and a kubeconfig as in its pod."""

    cluster: Cluster
    kubeconfig: Path

    def grant(self, *permissions: Permission) -> None:
        """Let the roles grant these, and nothing else."""
        for plural, role in ROLES.items():
            metadata = role["metadata"]
            rules = [each.rule() for each in permissions if each.role == plural]
            where = path(plural, metadata.get("namespace", ""), metadata["name"])
            done(self.cluster.api.patch(where, {"rules": rules}))

    def refusals(self) -> list[str]:
        """Make every request that the relay makes; return those that were refused as forbidden."""
        with Watched({"KUBECONFIG": str(self.kubeconfig)}) as connection:
            for source in _watched(connection):
                _fetch(source.fetch)
                _fetch(source.fetch, watch=True, timeout_seconds=1)
            for call in CALLS.values():
                # A missing claim, or an API that is not served, is not a refusal.
                with suppress(Temporary, Permanent):
                    call(Calls(connection))
            for keep in MIRROR_CALLS.values():
                with suppress(Temporary, Permanent, NotInstalled):
                    keep(MirrorCalls(connection))
            connection.rest_client.pool_manager.clear()
            assert connection.asked >= len(_watched(connection)) * 2 + len(CALLS) + len(MIRROR_CALLS)
            refused: list[str] = connection.refused
            return refused


def _watched(connection: Connection) -> Sequence[Source[Kind, Known]]:
    """Return what is watched in every cluster: TPUNodeGroups are in self-managed ones, which have more roles."""
    return [each for each in sources(connection) if each.kind is not Kind.NODE_GROUPS]


def _fetch(fetch: Callable[..., Any], **more: Any) -> None:
    with suppress(ApiException):
        fetch(**more, _preload_content=False, _request_timeout=PATIENCE).close()


@pytest.fixture
def stage(cluster: Cluster, tmp_path: Path) -> Stage:
    """Apply the relay's manifests, and provide a token as in its pod."""
    for manifest in manifests(CLUSTER):
        if manifest["kind"] not in RBAC:
            continue  # tests/kubernetes/test_relay_restrictions.py
        within, name = manifest["metadata"].get("namespace", ""), manifest["metadata"]["name"]
        where = path(APPLIED[manifest["kind"]], within, name)
        done(cluster.api.patch(where, manifest, APPLY, fieldManager="test", force="true"))
    (tmp_path / "token").write_text(token_of(cluster.api, NAMESPACE, NAME))
    kubeconfig = tmp_path / "relay.kubeconfig"
    kubeconfig.write_text(for_token_file(cluster.kubeconfig.read_text(), tmp_path / "token"))
    return Stage(cluster, kubeconfig)


def test_every_call_of_the_relay_is_tried_here() -> None:
    public = {name for name in vars(Calls) if not name.startswith("_")}
    assert public == {name.rpartition(" ")[2] for name in CALLS}
    public = {name for name in vars(MirrorCalls) if not name.startswith("_")}
    assert public == {name.partition(" ")[0] for name in MIRROR_CALLS}


def test_the_roles_allow_all_that_the_relay_does(stage: Stage) -> None:
    until(lambda: stage.refusals() == [], "the roles to allow everything")


def test_each_request_needs_one_permission_and_each_permission_is_needed(stage: Stage) -> None:
    stage.grant()
    with Connection({"KUBECONFIG": str(stage.kubeconfig)}) as connection:
        asked = len(_watched(connection)) * 2 + len(CALLS) + len(MIRROR_CALLS)

    def all_refused() -> list[str]:
        refused = stage.refusals()
        return refused if len(refused) == asked else []

    refused = until(all_refused, "the roles to allow nothing")
    lacking = [[each for each in PERMISSIONS if each.missed_by(one)] for one in refused]
    assert [one for one, each in zip(refused, lacking, strict=True) if len(each) != 1] == []
    assert {str(each) for each in PERMISSIONS} - CREATED == {str(each) for [each] in lacking}


def test_a_token_that_another_takes_the_place_of_in_its_file_is_picked_up(stage: Stage) -> None:
    until(lambda: stage.refusals() == [], "the roles to allow everything")
    token = stage.kubeconfig.with_name("token")
    good = token.read_text()
    token.write_text("void")
    with Connection({"KUBECONFIG": str(stage.kubeconfig)}) as connection:
        with pytest.raises(Temporary, match="401"):
            Calls(connection).workload(an_owner("llama", namespace="default"))
        token.write_text(good)
        assert Calls(connection).workload(an_owner("llama", namespace="default")) is None
        connection.rest_client.pool_manager.clear()
