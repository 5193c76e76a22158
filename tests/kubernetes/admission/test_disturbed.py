"""Replicas of the webhook that end, are killed, and renew their authorities, while pods are created all the time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta

import pytest

from infra.kubernetes.overlay import NAMESPACE
from relay.connection import Connection
from relay.webhook.authorities import Authority, stored
from relay.webhook.calls import Calls
from tests.kubernetes.admission.created import created
from tests.kubernetes.admission.load import (
    OTHERS,
    OTHERS_REFUSED,
    PLACED,
    REFUSED,
    UNPLACED,
    WITH_CHIPS,
    Balancer,
    Load,
    loaded,
)
from tests.kubernetes.admission.test_webhook import is_placed
from tests.kubernetes.cluster import Cluster
from tests.relay.webhook.process import Site, site
from tests.relay.webhook.replica import TO_RENEW, TO_SIGN, a_clock, replica
from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.ports import free_ports
from tpu_standins.testing.waiting import until

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket, pytest.mark.slow]


@pytest.fixture
def where(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(cluster.plane.kubeconfig, tmp_path_factory.mktemp("webhook")) as made:
        yield made
    until(lambda: created(cluster, WITH_CHIPS).object, "the webhook to be called no more")


@pytest.fixture
def balancer() -> Iterator[Balancer]:
    with closing(Balancer()) as made:
        yield made


def nobody_was_wronged(load: Load) -> None:
    """Fail if a pod with chips was created without being placed, or another pod was refused."""
    assert load.counts.get(UNPLACED, 0) == 0
    assert load.counts.get(OTHERS_REFUSED, 0) == 0


def test_pods_are_placed_while_every_replica_is_replaced(cluster: Cluster, where: Site, balancer: Balancer) -> None:
    """As a Deployment does it: another is ready before the Service forgets one, which then is told to end."""
    first, *others = free_ports(5)
    with ExitStack() as alive:
        replica = alive.enter_context(where.replica(first, DRAIN_SECONDS="1"))
        balancer.ports = (first,)
        where.call(balancer.port, conditions=True)
        until(lambda: is_placed(cluster), "the webhook to be called")
        with loaded(cluster) as load:
            load.more(PLACED)
            for port in others:
                following = alive.enter_context(where.replica(port, DRAIN_SECONDS="1"))
                balancer.ports = (port,)
                replica.process.terminate()
                replica.process.wait(PATIENCE_SECONDS)
                replica = following
            load.more(PLACED)
        nobody_was_wronged(load)
        # An idle connection that is closed in the very moment of its use costs one refusal (ADR 116).
        assert load.counts[REFUSED] <= len(others), load.refusals
        where.uncall()


def test_pods_are_placed_while_authorities_are_renewed(cluster: Cluster, where: Site, balancer: Balancer) -> None:
    clock = a_clock()
    with replica(where, clock) as one, replica(where, clock) as other:
        balancer.ports = (one.port, other.port)
        where.call(balancer.port, conditions=True)
        one.certificates.step()
        until(lambda: is_placed(cluster), "the webhook to be called")
        first = one.signer
        with loaded(cluster) as load:
            for pause in (TO_RENEW, TO_SIGN):
                clock.advance(pause)
                load.more(PLACED)
                one.certificates.step()
                load.more(PLACED)  # each of the two renews when it comes to that
                other.certificates.step()
                load.more(PLACED)
        nobody_was_wronged(load)
        assert load.counts[REFUSED] == 0, load.refusals
        assert one.signer.certificate == other.signer.certificate != first.certificate
        where.uncall()


def test_pods_with_chips_are_refused_and_others_are_not_while_all_replicas_are_dead(
    cluster: Cluster, where: Site, balancer: Balancer
) -> None:
    dead, port = free_ports(2)
    with where.replica(dead) as killed:
        balancer.ports = (dead,)
        where.call(balancer.port, conditions=True)
        until(lambda: is_placed(cluster), "the webhook to be called")
        with loaded(cluster) as load:
            load.more(PLACED)
            killed.kill()
            load.more(REFUSED)
            load.more(OTHERS)
            with where.replica(port):
                balancer.ports = (port,)
                load.more(PLACED)
        nobody_was_wronged(load)
        where.uncall()


def test_a_webhook_whose_authority_expired_while_it_was_away_is_trusted_again(
    cluster: Cluster, where: Site, balancer: Balancer
) -> None:
    expired = stored([Authority.make(datetime.now(UTC) - timedelta(days=400))])
    with closing(Connection({"KUBECONFIG": str(where.own)})) as connection:
        calls = Calls(connection, NAMESPACE)
        calls.keep(expired, calls.kept())
    (port,) = free_ports(1)
    with where.replica(port):
        balancer.ports = (port,)
        where.call(balancer.port, conditions=True)
        until(lambda: is_placed(cluster), "the webhook to be called")
        where.uncall()
