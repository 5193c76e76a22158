"""How the webhook's certificates are renewed, by replicas that know nothing of each other."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence

import pytest
from cryptography import x509
from hypothesis import given
from hypothesis import strategies as st

from relay.webhook.authorities import LIFE, Authority, bundle_of, identity_of, kept_up, read, signer_of, stored
from relay.webhook.certificates import Certificates, Kept
from tests.builders import MINUTE, NOW
from tests.relay.webhook.plane import Plane, authorities_in, days, is_valid
from tpu_slices.ports.errors import Temporary
from tpu_slices_simulator.fakes.clock import FakeClock

NAMES = ("webhook.tpu-slice-provisioner.svc", "127.0.0.1")


class Replica:
    """One of the webhook's pods."""

    def __init__(self, plane: Plane, clock: FakeClock) -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.certificates = Certificates(plane, NAMES, clock.now, self.context)

    def step(self) -> None:
        self.certificates.step()

    @property
    def signer(self) -> Authority:
        identity = self.certificates.identity
        assert identity is not None
        return identity.signer


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(NOW)


def test_the_first_replica_makes_an_authority_and_the_others_use_it(clock: FakeClock) -> None:
    plane = Plane()
    replicas = [Replica(plane, clock) for _ in range(3)]
    for each in replicas:
        each.step()
    (authority,) = authorities_in(plane.bundle)
    assert {each.signer.certificate for each in replicas} == {authority}


def test_nothing_is_written_while_nothing_is_due(clock: FakeClock) -> None:
    plane = Plane()
    replica = Replica(plane, clock)
    replica.step()
    before = plane.written
    for _ in range(100):
        clock.advance(days(1))
        replica.step()
    assert plane.written == before


def test_of_two_replicas_that_renew_at_once_one_is_refused_and_follows(clock: FakeClock) -> None:
    plane = Plane()

    class Late(Plane):
        def kept(self) -> Kept:
            found = plane.kept()
            one.step()
            return found

        def keep(self, entries: Mapping[str, bytes], before: Kept) -> None:
            plane.keep(entries, before)

    one = Replica(plane, clock)
    other = Replica(Late(), clock)
    with pytest.raises(Temporary):
        other.step()
    assert other.certificates.identity is None
    follower = Replica(plane, clock)
    follower.step()
    assert follower.signer.certificate == one.signer.certificate


def test_a_replica_serves_before_the_api_server_is_told_to_call_it(clock: FakeClock) -> None:
    plane = Plane(bundle=None)
    replica = Replica(plane, clock)
    replica.step()
    assert replica.certificates.usable.is_set()
    assert plane.bundle is None
    plane.bundle = b""
    replica.step()
    assert authorities_in(plane.bundle) == [replica.signer.certificate]


def test_what_others_wrote_as_trusted_is_put_right(clock: FakeClock) -> None:
    plane = Plane()
    replica = Replica(plane, clock)
    replica.step()
    right, plane.bundle = plane.bundle, b"something else"
    replica.step()
    assert plane.bundle == right


def test_a_certificate_of_a_server_is_taken_for_no_authority(clock: FakeClock) -> None:
    """As `kubectl create secret tls` or cert-manager would put there."""
    other = Authority.make(NOW)
    chain = identity_of(other, NAMES).chain
    key = chain[chain.index(b"-----BEGIN PRIVATE KEY") :]
    plane = Plane(entries={"tls.crt": chain.removesuffix(key), "tls.key": key})
    replica = Replica(plane, clock)
    replica.step()
    assert authorities_in(plane.bundle) == [replica.signer.certificate]


@pytest.mark.parametrize("minutes", [-20, 20])
def test_a_replica_whose_clock_is_off_makes_an_authority_that_is_valid_now(clock: FakeClock, minutes: int) -> None:
    plane = Plane()
    Replica(plane, FakeClock(NOW + minutes * MINUTE)).step()
    replica = Replica(plane, clock)
    replica.step()
    assert is_valid(replica.signer.certificate, NOW)
    assert is_valid(x509.load_pem_x509_certificate(chain_of(replica)), NOW)


def chain_of(replica: Replica) -> bytes:
    assert replica.certificates.identity is not None
    return replica.certificates.identity.chain


def test_entries_that_cannot_be_read_are_replaced(clock: FakeClock) -> None:
    key_of_another = stored([Authority.make(NOW)])
    (name,) = [each for each in key_of_another if each.endswith(".key")]
    for wrong in (
        {"a.crt": b"no certificate", "a.key": b"no key"},
        {"a.crt": b""},
        {**stored([Authority.make(NOW)]), name: key_of_another[name]},
    ):
        plane = Plane(entries=wrong)
        replica = Replica(plane, clock)
        replica.step()
        assert read(plane.entries)
        assert authorities_in(plane.bundle) == [replica.signer.certificate]


def test_a_replica_goes_on_with_what_it_has_while_the_api_server_is_away(clock: FakeClock) -> None:
    plane = Plane()
    replica = Replica(plane, clock)
    replica.step()
    before = replica.signer
    plane.is_away = True
    clock.advance(days(100))
    with pytest.raises(Temporary):
        replica.step()
    assert replica.signer == before


def test_a_new_certificate_is_used_by_connections_from_then_on(clock: FakeClock) -> None:
    """The context is the server's: it is changed in place."""
    plane = Plane()
    replica = Replica(plane, clock)
    replica.step()
    first = replica.signer
    for _ in range(12):
        clock.advance(LIFE / 12)
        replica.step()
    assert replica.signer != first


def test_authorities_are_read_as_they_were_stored() -> None:
    made = [Authority.make(NOW), Authority.make(NOW + days(1))]
    found = read(stored(made))
    assert [each.certificate for each in found] == [each.certificate for each in made]
    assert stored(found) == stored(made)


@given(st.lists(st.tuples(st.integers(0, 2), st.floats(0.01, 25)), min_size=1, max_size=200))
def test_whatever_serves_is_trusted_has_not_expired_and_was_trusted_a_day_before(
    steps: Sequence[tuple[int, float]],
) -> None:
    """Three replicas, each of which may sleep for weeks; the API server learns late of what it is to trust."""
    clock, plane = FakeClock(NOW), Plane()
    replicas = [Replica(plane, clock) for _ in range(3)]
    for each in replicas:
        each.step()
    trusted = [(NOW, authorities_in(plane.bundle))]
    for number, pause in steps:
        clock.advance(days(pause))
        trusted.append((clock.now(), authorities_in(plane.bundle)))
        replicas[number].step()
        signer = replicas[number].signer.certificate
        known = [bundle for at, bundle in trusted if clock.now() - at >= days(1)]
        assert signer in authorities_in(plane.bundle)
        assert is_valid(signer, clock.now())
        assert not known or signer in known[-1]


def test_an_authority_is_kept_until_it_ends() -> None:
    first = Authority.make(NOW)
    second = kept_up([first], NOW + LIFE * 0.7)
    assert bundle_of(second).count(b"BEGIN CERTIFICATE") == 2
    assert signer_of(second, NOW + LIFE * 0.7) == first
    assert signer_of(second, NOW + LIFE * 0.8) == second[1]
    assert kept_up(second, NOW + LIFE) == second[1:]
