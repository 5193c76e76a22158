"""The bootstrap tokens that the relay makes, hands out again and removes."""

from __future__ import annotations

import base64
import itertools
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from relay.joining.authorities import ca_hashes
from relay.joining.tokens import Tokens
from tests.builders import MINUTE, NOW
from tpu_slices.domain.model.joining import JoinEnded, JoinQuestion, JoinToken
from tpu_slices.domain.model.slices import ClaimId
from tpu_slices.ports.errors import Temporary
from tpu_slices_simulator.bootstrap import FakeBootstrap
from tpu_slices_simulator.fakes.clock import FakeClock

SLICE = ClaimId("tpu-llama-0-ni2rmqnzkqh7a")
QUESTION = JoinQuestion(slice_id=SLICE, attempt=1, asked_at=NOW)
AUTHORITY = """-----BEGIN CERTIFICATE-----
MIIBgTCCASegAwIBAgIUb4PwNU2fxw1g6KTgFdLuYvIKHnYwCgYIKoZIzj0EAwIw
FTETMBEGA1UEAwwKa3ViZXJuZXRlczAgFw0yNjExMjQxODU5MjlaGA8yMTI2MTAz
MTE4NTkyOVowFTETMBEGA1UEAwwKa3ViZXJuZXRlczBZMBMGByqGSM49AgEGCCqG
SM49AwEHA0IABHC4J4nidWzK/K0ipq3UKEeSTlPJl1obVQlujkp3b6PRXS4F9ta5
darhiJbfXBRVdgh8zzKNOXnqURxJtQQ/+yujUzBRMB0GA1UdDgQWBBS/xRYPeV2Y
uq+FoLSsoxFoKiIF/DAfBgNVHSMEGDAWgBS/xRYPeV2Yuq+FoLSsoxFoKiIF/DAP
BgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0gAMEUCIFPGGikFiCv6BceEhNzh
2OZsYyXom0w9NGWnPQEb68hyAiEAnBWznrbw8uevK2iYFiY35SsWp9bgxQiFJ/zz
OnoiTjM=
-----END CERTIFICATE-----
"""
HASH = "sha256:a00656034a8035ec1feb47ed9dfb764929a2da1f26c62c36ea514b4d5607e48c"
"""What OpenSSL 3 says of its public key, by the commands of kubeadm's reference (`kubeadm join`, "CA pinning")."""


class Site:
    """What makes tokens, and the cluster that it makes them in."""

    def __init__(self) -> None:
        self.clock = FakeClock(NOW)
        self.bootstrap = FakeBootstrap()
        self.tokens = self.restarted()

    def restarted(self) -> Tokens:
        return Tokens(self.bootstrap, self.clock.now)

    def asks(self, tokens: Tokens | None = None, **changes: Any) -> JoinToken:
        question = replace(QUESTION, asked_at=self.clock.now(), **changes)
        [answer] = (tokens or self.tokens).answer(question)
        return answer


def data_of(secret: Any) -> dict[str, str]:
    return {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}


def test_a_token_is_a_secret_as_kubernetes_reads_it() -> None:
    site = Site()
    made = site.asks()
    id_, _, secret = made.token.partition(".")
    [(name, kept)] = site.bootstrap.secrets.items()
    assert name == f"bootstrap-token-{id_}"
    assert kept["type"] == "bootstrap.kubernetes.io/token"
    assert data_of(kept) == {
        "token-id": id_,
        "token-secret": secret,
        "expiration": "2026-03-01T12:30:00Z",
        "usage-bootstrap-authentication": "true",
        "usage-bootstrap-signing": "true",
        "auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token",
        "description": f"Hosts of slice {SLICE}, attempt 1, join with it.",
    }
    assert kept["metadata"]["labels"] == {
        "app.kubernetes.io/managed-by": "tpu-slice-provisioner",
        "google.com/tpu-slice-id": SLICE,
        "google.com/tpu-slice-attempt": "1",
    }


def test_an_answer_has_what_hosts_need() -> None:
    site = Site()
    made = site.asks()
    assert (made.slice_id, made.attempt) == (SLICE, 1)
    assert made.expires_at == NOW + 30 * MINUTE
    assert made.ca_hashes == site.bootstrap.ca_hashes()


@pytest.mark.parametrize(("after", "same"), [(0, True), (19, True), (20, False), (40, False)])
def test_a_token_is_handed_out_again_while_it_lives_longer_than_ten_minutes(after: int, same: bool) -> None:
    site = Site()
    first = site.asks()
    site.clock.advance(after * MINUTE)
    again = site.asks()
    assert (again.token == first.token) is same
    assert len(site.bootstrap.secrets) == (1 if same else 2)


@pytest.mark.parametrize("changes", [{"attempt": 2}, {"slice_id": ClaimId("tpu-llama-1-ni2rmqnzkqh7a")}])
def test_each_attempt_of_each_slice_has_a_token_of_its_own(changes: dict[str, Any]) -> None:
    site = Site()
    assert site.asks().token != site.asks(**changes).token


def test_a_relay_that_restarted_makes_another_one() -> None:
    site = Site()
    assert site.asks().token != site.asks(site.restarted()).token


def test_all_tokens_of_an_attempt_are_removed_and_no_others() -> None:
    site = Site()
    site.asks()
    site.asks(site.restarted())
    other = site.asks(attempt=2)
    site.tokens.end(JoinEnded(slice_id=SLICE, attempt=1))
    assert list(site.bootstrap.secrets) == [f"bootstrap-token-{other.token.partition('.')[0]}"]


def test_a_token_that_was_removed_is_not_handed_out_again() -> None:
    site = Site()
    first = site.asks()
    site.tokens.end(JoinEnded(slice_id=SLICE, attempt=1))
    assert site.asks().token != first.token


def test_a_question_that_is_long_past_is_not_answered() -> None:
    site = Site()
    site.clock.advance(timedelta(minutes=31))
    assert site.tokens.answer(QUESTION) == ()
    assert site.bootstrap.secrets == {}


def test_a_token_that_could_not_be_made_is_made_when_it_is_asked_for_again() -> None:
    site = Site()
    site.bootstrap.refuses = Temporary("the API server does not answer")
    with pytest.raises(Temporary):
        site.asks()
    site.bootstrap.refuses = None
    made = site.asks()
    assert [*site.bootstrap.secrets] == [f"bootstrap-token-{made.token.partition('.')[0]}"]


def test_tokens_are_drawn_from_all_letters_and_digits() -> None:
    drawn: list[str] = []
    choices = itertools.cycle("abcdefghijklmnopqrstuvwxyz0123456789")

    def choose(alphabet: Any) -> str:
        drawn.append("".join(alphabet))
        return next(choices)

    bootstrap = FakeBootstrap()
    [made] = Tokens(bootstrap, FakeClock(NOW).now, choose).answer(QUESTION)
    assert made.token == "abcdef.ghijklmnopqrstuv"
    assert set(drawn) == {"abcdefghijklmnopqrstuvwxyz0123456789"}


def test_an_authority_is_pinned_as_kubeadm_pins_it() -> None:
    assert ca_hashes(AUTHORITY) == (HASH,)


def test_an_authority_that_comes_twice_is_pinned_once() -> None:
    assert ca_hashes(AUTHORITY + AUTHORITY) == (HASH,)


def test_a_bundle_without_certificates_is_an_error() -> None:
    with pytest.raises(ValueError, match="PEM"):
        ca_hashes("nothing")
