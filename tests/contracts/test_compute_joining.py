"""How hosts on the local Compute Engine are given a bootstrap token, and how it is taken away."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.builders import NOW
from tests.contracts.compute_steps import MINUTE, an_order, made, until, with_template
from tests.contracts.local_compute import LocalCompute
from tests.contracts.test_backend import refused
from tpu_slices.domain.model.clusters import PoolSettings
from tpu_slices.domain.model.joining import JoinToken
from tpu_slices.domain.model.observations import FailureKind, Refused, Started
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.ports.backend import PoolOrder
from tpu_slices.ports.errors import Temporary
from tpu_slices_simulator.fakes.troubles import Trouble

SECRET = "abcdef.0123456789abcdef"
ITEMS = {"kubeadm-join-token": SECRET, "kubeadm-control-plane-ip": "10.0.0.2", "kubeadm-ca-hash": "sha256:1,sha256:2"}
SET = "instances.setMetadata"


@pytest.fixture
def place() -> LocalCompute:
    return LocalCompute()


def a_token(order: PoolOrder) -> JoinToken:
    return JoinToken(
        slice_id=order.slice_id,
        attempt=order.attempt,
        token=SECRET,
        ca_hashes=("sha256:1", "sha256:2"),
        expires_at=NOW + timedelta(minutes=30),
    )


def hosts(place: LocalCompute) -> PoolOrder:
    """Return the order of a group whose VMs exist."""
    order = made(place, an_order(place))
    place.wait(10 * MINUTE)
    return order


def given(place: LocalCompute, order: PoolOrder) -> list[dict[str, str]]:
    """Return what of ITEMS each VM has."""
    return [{key: value for key, value in each.items() if key in ITEMS} for each in place.metadata(order.name)]


def test_every_host_gets_the_token_and_keeps_its_other_metadata(place: LocalCompute) -> None:
    order = hosts(place)
    before = place.metadata(order.name)
    assert place.backend.join(order, a_token(order)) == Started(None)
    place.wait(MINUTE)
    assert place.metadata(order.name) == [{**each, **ITEMS} for each in before]


def test_a_token_that_hosts_have_is_not_set_again(place: LocalCompute) -> None:
    order = hosts(place)
    for _ in range(3):
        assert place.backend.join(order, a_token(order)) == Started(None)
        place.wait(MINUTE)
    assert place.calls(SET) == 2


def test_a_token_is_taken_away(place: LocalCompute) -> None:
    order = hosts(place)
    before = place.metadata(order.name)
    place.backend.join(order, a_token(order))
    place.wait(MINUTE)
    assert place.backend.join(order, None) == Started(None)
    place.wait(MINUTE)
    assert place.metadata(order.name) == before


def test_hosts_that_do_not_exist_yet_are_left_to_the_next_call(place: LocalCompute) -> None:
    order = an_order(place)
    place.run_out(order.name)
    order = made(place, order)
    outcome = place.backend.join(order, a_token(order))
    assert refused(outcome) is FailureKind.BUSY
    assert isinstance(outcome, Refused)
    assert outcome.failure.message == "2 of 2 instances do not exist yet, or are being changed."
    place.calm_down()
    place.wait(10 * MINUTE)
    assert place.backend.join(order, a_token(order)) == Started(None)
    place.wait(MINUTE)
    assert given(place, order) == [ITEMS, ITEMS]


def test_a_host_that_others_change_is_left_to_the_next_call(place: LocalCompute) -> None:
    order = hosts(place)
    late = place.reading_late()
    place.change_vm(order.name, note="mine")
    outcome = late.join(order, a_token(order))
    assert refused(outcome) is FailureKind.BUSY
    place.wait(MINUTE)
    assert sorted(map(len, given(place, order))) == [0, 3]
    assert place.backend.join(order, a_token(order)) == Started(None)
    place.wait(MINUTE)
    assert given(place, order) == [ITEMS, ITEMS]


def test_what_others_add_stays(place: LocalCompute) -> None:
    order = hosts(place)
    place.change_vm(order.name, note="mine")
    place.backend.join(order, a_token(order))
    place.wait(MINUTE)
    assert [each.get("note") for each in place.metadata(order.name)].count("mine") == 1


def test_a_missing_permission_is_told(place: LocalCompute) -> None:
    order = hosts(place)
    place.trouble(Trouble.FORBIDDEN)
    assert refused(place.backend.join(order, a_token(order))) is FailureKind.CONFIGURATION


def test_a_refusal_that_repeats_what_was_sent_is_told_without_the_token(place: LocalCompute) -> None:
    order = hosts(place)
    outcome = place.echoing().join(order, a_token(order))
    assert isinstance(outcome, Refused)
    assert "'kubeadm-join-token': '[redacted]'" in outcome.failure.message
    assert SECRET not in repr(outcome)


def test_no_error_has_the_token(place: LocalCompute) -> None:
    order = hosts(place)
    place.trouble(Trouble.ANSWER_LOST)
    with pytest.raises(Temporary) as lost:
        place.backend.join(order, a_token(order))
    assert SECRET not in repr(lost.value)
    assert lost.value.__cause__ is None


def test_no_token_is_given_to_what_is_not_ours_or_not_there_or_joins_otherwise(place: LocalCompute) -> None:
    order = until(place, an_order(place), 2)
    token = a_token(order)
    assert place.backend.join(order, token) == Started(None)
    order = made(place, order)
    place.wait(10 * MINUTE)
    stranger = replace(order, job=replace(order.job, cluster=ClusterId("other")))
    by_itself = replace(order, settings=PoolSettings())
    brought = with_template(order, "projects/demo-project/global/instanceTemplates/mine")
    for each in (stranger, by_itself, brought, replace(order, spec=None)):
        assert place.backend.join(each, token) == Started(None)
    assert place.calls(SET) == 0
