"""The local stack: the hosts of a declared slice join with the real startup script, or do not, and what is told."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from infra.local.addresses import Addresses
from infra.local.cluster_choice import Embedded
from infra.local.demo.http import get_json
from infra.local.plan import REPOSITORY, planned
from infra.local.settings import checked, file_of, put
from infra.local.stack import Stack, running
from tpu_slices.domain.model.slices import ClusterId
from tpu_standins.clients.api import Api
from tpu_standins.clients.objects import Object
from tpu_standins.compute.booting.cluster import KubeconfigServer
from tpu_standins.prerequisites import Tools
from tpu_standins.testing.waiting import until

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket, pytest.mark.real]

MANIFEST = REPOSITORY / "examples" / "demo" / "compute" / "c-declared.yaml"
BINDING = ("kube-system", "tpu-slice-provisioner-relay-joining")
GROUPS = "tpunodegroups"
TOKEN = {"kubeadm-join-token", "kubeadm-ca-hash"}

Json = dict[str, Any]


@dataclass(frozen=True)
class Site:
    """A stack, asked by the cluster's administrator."""

    stack: Stack
    api: Api

    @contextmanager
    def declared(self, name: str) -> Iterator[None]:
        """Apply a TPUNodeGroup; ask for its deletion in the end."""
        manifest = yaml.safe_load(MANIFEST.read_text())
        self.api.create(GROUPS, {**manifest, "metadata": {"name": name, "namespace": "default"}})
        try:
            yield
        finally:
            self.api.delete(GROUPS, "default", name)

    def group(self, name: str) -> Object | None:
        found = self.api.list(GROUPS, "default")["items"]
        return next((each for each in found if each["metadata"]["name"] == name), None)

    def told(self, name: str) -> tuple[str, str]:
        """Return reason and message of a group's condition Ready."""
        conditions = ((self.group(name) or {}).get("status") or {}).get("conditions") or ()
        ready = next((each for each in conditions if each["type"] == "Ready"), None)
        return (ready["reason"], ready["message"]) if ready else ("", "")

    def hosts(self, name: str) -> dict[str, Json]:
        """Return the instances of a group's slice, by name."""
        found = get_json(f"{self.stack.addresses.buttons}/instances")["instances"]
        return {each["name"]: each for each in found if each["name"].startswith(f"tpu-{name}-")}

    def attributes(self, name: str, key: str) -> list[str]:
        """Return what each host tells of itself in a guest attribute; empty: nothing."""
        told = (host["guest_attributes"] for host in self.hosts(name).values())
        return [each.get(f"tpu-slice-provisioner/{key}", "") for each in told]

    def tokens(self, name: str) -> list[Object]:
        """Return the bootstrap tokens for a group's slice."""
        label = "google.com/tpu-slice-id"
        found = self.api.list("secrets", "kube-system", labelSelector=label)["items"]
        return [each for each in found if each["metadata"]["labels"][label].startswith(f"tpu-{name}-")]

    def await_told(self, name: str, reason: str, message: str = "") -> None:
        def is_told() -> bool:
            told = self.told(name)
            return told[0] == reason and message in told[1]

        until(is_told, f"{name} to be {reason}")


def impatient(addresses: Addresses) -> None:
    """Write the demo's settings, with which slices are looked at again sooner."""
    settings = yaml.safe_load(file_of(addresses).read_text())
    settings["limits"] |= {"requeue_after": "2s", "resync_after": "4s"}
    put(checked(yaml.safe_dump(settings), ClusterId(addresses.cluster_id)), addresses)


@pytest.fixture(scope="module")
def site(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Run a stack, whose hosts run their startup script; skip loudly where they cannot, and fail in CI."""
    assert tools.java.exists()
    plan = planned(tmp_path_factory.mktemp("state"), Embedded(), compute=True, sweep_seconds=1)
    if plan.unbooted:
        if os.environ.get("CI") == "true":
            pytest.fail(plan.unbooted, pytrace=False)
        pytest.skip(f"HOSTS THAT JOIN BY THEIR STARTUP SCRIPT ARE NOT TESTED HERE: {plan.unbooted}")
    with running(plan, impatient) as stack, closing(Api.of(stack.addresses.kubeconfig)) as api:
        yield Site(stack, api)
        until(lambda: api.list(GROUPS)["items"] == [], "the groups to go")


def test_hosts_join_with_a_token_that_is_nowhere_afterwards(site: Site) -> None:
    with site.declared("joining"):
        site.await_told("joining", "Ready")
        until(lambda: site.attributes("joining", "state") == ["joined", "joined"], "both hosts to tell of it")
        nodes = site.api.list("nodes", labelSelector="cloud.google.com/tpu-node-group-name=joining")["items"]
        assert {node["metadata"]["name"] for node in nodes} == site.hosts("joining").keys()
        until(lambda: site.tokens("joining") == [], "the token to be deleted")
        until(
            lambda: not any(TOKEN & host["metadata"].keys() for host in site.hosts("joining").values()),
            "the token to be taken out of the metadata",
        )


def test_hosts_wait_for_a_token_as_long_as_none_can_be_made(site: Site) -> None:
    with site.declared("waiting"):
        with no_right_to_make_tokens(site):
            until(lambda: site.attributes("waiting", "state") == ["waiting-for-token"] * 2, "hosts to wait")
            site.await_told("waiting", "AwaitingNodeJoin", "for a token to join with, and has not answered yet")
            assert site.tokens("waiting") == []
        site.await_told("waiting", "Ready")


@contextmanager
def no_right_to_make_tokens(site: Site) -> Iterator[None]:
    """Remove the relay's right to make bootstrap tokens for a while."""
    binding = site.api.get("rolebindings", *BINDING)
    kept = {key: binding[key] for key in ("roleRef", "subjects")}
    site.api.delete("rolebindings", *BINDING)
    try:
        yield
    finally:
        site.api.create("rolebindings", kept | {"metadata": {"name": BINDING[1], "namespace": BINDING[0]}})


def test_a_token_that_nobody_made_is_none_to_join_with(site: Site) -> None:
    assert not KubeconfigServer(site.stack.addresses.kubeconfig).takes("abcdef.0123456789abcdef")
