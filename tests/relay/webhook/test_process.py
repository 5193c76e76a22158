"""The webhook as a process with its own account, called by the embedded API server."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from infra.kubernetes.overlay import NAMESPACE
from relay.connection import Connection
from relay.webhook.calls import CONFIGURATION, Calls
from tests.infra.admission.pods import IDLE, Json, a_pod, of_jobset, terms_of
from tests.local.served import Served, serving
from tests.relay.webhook.process import Site, site
from tests.relay.webhook.replica import TO_RENEW, TO_SIGN, a_clock, replica
from tpu_slices.domain.planning.keys import KEY_LABEL
from tpu_standins.clients.api import Api
from tpu_standins.clients.errors import ApiError
from tpu_standins.ports import free_ports
from tpu_standins.testing.waiting import until

CONFIGURED = ("mutatingwebhookconfigurations", None, CONFIGURATION)
pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("served")) as one:
        yield one


@pytest.fixture
def where(served: Served, tmp_path: Path) -> Iterator[Site]:
    with site(served.kubeconfig, tmp_path) as made:
        yield made


@pytest.fixture
def api(served: Served) -> Iterator[Api]:
    with closing(Api.of(served.kubeconfig)) as connected:
        yield connected


def tried(api: Api, pod: Json) -> Json:
    """Return what would become of a new pod. Raise ApiError if it is refused."""
    return api.call("POST", "/api/v1/namespaces/default/pods", pod, query={"dryRun": "All"})


def is_placed(api: Api) -> bool:
    try:
        return KEY_LABEL in str(terms_of(tried(api, of_jobset())))
    except ApiError:
        return False


def test_a_pod_with_chips_is_placed_as_soon_as_the_webhook_is_called(where: Site, api: Api) -> None:
    (port,) = free_ports(1)
    with where.replica(port):
        assert not is_placed(api)
        where.call(port, conditions=False)
        until(lambda: is_placed(api), "the webhook to be called")
        assert terms_of(tried(api, a_pod(IDLE))) == []
        where.uncall()


def test_replicas_share_their_authorities_and_one_that_is_new_is_trusted_at_once(where: Site, api: Api) -> None:
    one, other = free_ports(2)
    with where.replica(one), where.replica(other):
        for port in (one, other):
            where.call(port, conditions=False)
            until(lambda: is_placed(api), "the webhook to be called")
        where.uncall()


def test_its_authorities_are_renewed_while_pods_are_created(where: Site, api: Api) -> None:
    clock = a_clock()
    with replica(where, clock) as webhook:
        where.call(webhook.port, conditions=False)
        webhook.certificates.step()
        until(lambda: is_placed(api), "the webhook to be called")
        first = webhook.signer
        for pause in (TO_RENEW, TO_SIGN):
            clock.advance(pause)
            webhook.certificates.step()
            assert is_placed(api)
        assert webhook.signer != first
        where.uncall()


def test_without_the_webhook_a_pod_with_chips_is_refused_and_the_refusal_names_it(where: Site, api: Api) -> None:
    (port,) = free_ports(1)
    with where.replica(port):
        where.call(port, conditions=False)
        until(lambda: is_placed(api), "the webhook to be called")
    with pytest.raises(ApiError, match=r"failed calling webhook .pods\.tpu-slice-provisioner\.google\.com"):
        tried(api, of_jobset())


def test_its_own_webhook_is_told_apart_from_others_of_its_configuration(where: Site, api: Api) -> None:
    where.call(1, conditions=False)
    found = api.get(*CONFIGURED)
    ours, gangs = found["webhooks"]
    other = {**ours, "name": "other.example.com"}
    with closing(Connection({"KUBECONFIG": str(where.own)})) as connection:
        calls = Calls(connection, NAMESPACE)
        for webhooks, bundles in (
            ([other, ours], ["", "new"]),
            ([ours, other, gangs], ["new", "", "new"]),
            ([], []),
            ([other], [""]),
        ):
            api.patch(*CONFIGURED, {"webhooks": webhooks})
            assert calls.trusted() == (b"" if ours in webhooks else None)
            calls.trust(b"new")
            said = [b64decode(each["clientConfig"].get("caBundle", "")) for each in api.get(*CONFIGURED)["webhooks"]]
            assert [each.decode() for each in said] == bundles
        connection.rest_client.pool_manager.clear()


def test_it_may_read_no_other_secret_and_change_no_other_configuration(where: Site) -> None:
    with closing(Api.of(where.own)) as own:
        for plural, namespace in (("secrets", "tpu-slice-provisioner"), ("pods", "default"), ("nodes", None)):
            with pytest.raises(ApiError) as refused:
                own.list(plural, namespace)
            assert refused.value.code == 403
        for plural, name in (("secrets", "other"), ("mutatingwebhookconfigurations", "jobset")):
            space = "tpu-slice-provisioner" if plural == "secrets" else None
            with pytest.raises(ApiError) as refused:
                own.patch(plural, space, name, {"metadata": {"labels": {"a": "b"}}})
            assert refused.value.code == 403
