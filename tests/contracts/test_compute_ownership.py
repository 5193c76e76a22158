"""What the adapter for Compute Engine touches, lists and refuses, on the local one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.builders import NOW, a_job, self_managed
from tests.contracts.compute_steps import (
    GROUPS,
    MINUTE,
    PARTS,
    POLICIES,
    TEMPLATES,
    an_order,
    made,
    unmade,
    until,
    with_template,
)
from tests.contracts.local_compute import LocalCompute
from tests.contracts.test_backend import refused, started
from tpu_slices.adapters.compute.api import clients
from tpu_slices.adapters.compute.backend import ComputeBackend
from tpu_slices.domain.model.observations import (
    Absent,
    Begun,
    FailureKind,
    OperationSeen,
    PoolSeen,
    Refused,
    Running,
    Started,
    Unowned,
    Unreadable,
)
from tpu_slices.domain.model.slices import ClusterId, PoolName, claim_id
from tpu_slices.ports.errors import Temporary
from tpu_slices_simulator.fakes.clock import FakeClock
from tpu_slices_simulator.fakes.troubles import Trouble, Verb
from tpu_standins.compute.server import Server
from tpu_standins.compute.state import Kind
from tpu_standins.testing.compute import World as Compute
from tpu_standins.testing.compute import a_state


@pytest.fixture
def place() -> LocalCompute:
    return LocalCompute()


# Ownership


@pytest.mark.parametrize("part", PARTS)
def test_what_others_have_under_the_name_is_neither_used_nor_deleted(place: LocalCompute, part: str) -> None:
    order = an_order(place)
    place.squat(order.name, part)
    before = place.requests()
    seen = place.backend.look(order)
    assert isinstance(seen, Unowned)
    assert "is not a line of JSON with tpu-slice-provisioner" in seen.message
    assert place.backend.delete(order) == Started(None)
    assert place.backend.delete_remains(order) == Started(None)
    assert place.requests() == before
    if part is not GROUPS:
        outcome = place.backend.create(order)
        assert isinstance(outcome, Refused)
        assert (outcome.failure.kind, outcome.begun) == (FailureKind.NAME_TAKEN, False)


def test_a_group_of_others_is_not_used_by_a_creation_that_has_begun(place: LocalCompute) -> None:
    order = until(place, an_order(place), 2)
    place.squat(order.name, GROUPS)
    outcome = place.backend.create(order)
    assert isinstance(outcome, Refused)
    assert (outcome.failure.kind, outcome.begun) == (FailureKind.NAME_TAKEN, False)


# Templates that are brought


def test_a_template_that_is_brought_is_used_and_stays(place: LocalCompute) -> None:
    order = made(place, with_template(an_order(place), place.bring_template("mine")))
    assert place.stands(order.name) == {POLICIES, GROUPS}
    place.wait(10 * MINUTE)
    unmade(place, order)
    assert (place.stands(order.name), place.stands(PoolName("mine"))) == (set(), {TEMPLATES})


def test_a_template_that_does_not_serve_is_told_before_anything_is_made(place: LocalCompute) -> None:
    order = an_order(place)
    absent = place.backend.create(with_template(order, "projects/demo-project/global/instanceTemplates/none"))
    wrong = place.backend.create(with_template(order, place.bring_template("small", machine_type="tpu7x-standard-1t")))
    assert (refused(absent), refused(wrong)) == (FailureKind.CONFIGURATION, FailureKind.CONFIGURATION)
    assert isinstance(absent, Refused)
    assert isinstance(wrong, Refused)
    assert absent.failure.message.endswith("/none cannot be used: it does not exist.")
    assert wrong.failure.message.endswith("its machine type is tpu7x-standard-1t, not tpu7x-standard-4t.")
    assert place.stands(order.name) == set()


@pytest.mark.parametrize("brought", [False, True], ids=["ours", "brought"])
def test_every_instance_has_the_labels_of_its_host_whatever_its_template(place: LocalCompute, brought: bool) -> None:
    order = an_order(place)
    order = made(place, with_template(order, place.bring_template("mine")) if brought else order)
    place.wait(10 * MINUTE)
    labels = {each["kube-labels"] for each in place.metadata(order.name)}
    assert len(place.metadata(order.name)) == 2
    assert all(f"cloud.google.com/gke-nodepool={order.name}" in each for each in labels)


# Lists


@pytest.mark.parametrize("before", range(1, 4))
def test_the_inventory_has_a_pool_whatever_stands_of_it(place: LocalCompute, before: int) -> None:
    order = until(place, an_order(place), before)
    expected = PoolSeen(name=order.name, slice_id=order.slice_id, attempt=1, job=order.job)
    assert place.backend.inventory(place.cluster) == (expected,)


def test_the_inventory_has_pools_of_others_by_our_names_alone(place: LocalCompute) -> None:
    job = a_job(cluster=ClusterId("other"))
    made(place, an_order(place, job=job, slice_id=claim_id(job)))
    theirs = an_order(place).name
    place.squat(theirs, GROUPS)
    assert [(pool.name, pool.job) for pool in place.backend.inventory(place.cluster)] == [(theirs, None)]
    others = place.backend.inventory(replace(place.cluster, cluster=ClusterId("other")))
    assert {pool.job for pool in others} == {job, None}
    assert place.backend.legacy_pools(place.cluster) == ()


def test_the_operations_that_run_are_listed_under_their_pool(place: LocalCompute) -> None:
    order = an_order(place)
    for _ in PARTS:
        operation = started(place.backend.create(order))
        listed = place.backend.pool_operations(place.cluster)
        assert listed == {OperationSeen(pool=order.name, creates=True, ended=False)}
        place.finish(order.name)
        assert place.backend.pool_operations(place.cluster) == frozenset()
        order = replace(order, operation=operation)
    started(place.backend.delete(order))
    assert place.backend.pool_operations(place.cluster) == {OperationSeen(pool=order.name, creates=False, ended=False)}


def test_a_step_that_runs_cannot_be_cancelled(place: LocalCompute) -> None:
    order = an_order(place)
    assert place.backend.cancel(order) == Started(None)
    place.backend.create(order)
    assert refused(place.backend.cancel(order)) is FailureKind.BUSY
    place.finish(order.name)
    assert place.backend.cancel(order) == Started(None)


# Troubles


@pytest.mark.parametrize("kind", [Kind.PERMISSION, Kind.RATE, Kind.INTERNAL])
def test_what_cannot_be_read_is_unreadable_and_no_list_is_half_a_list(place: LocalCompute, kind: Kind) -> None:
    order = made(place, an_order(place))
    place.break_down(kind)
    assert isinstance(place.backend.look(order), Unreadable)
    with pytest.raises(Temporary):
        place.backend.inventory(place.cluster)
    with pytest.raises(Temporary):
        place.backend.pool_operations(place.cluster)


@pytest.mark.slow
def test_a_read_is_repeated_during_an_outage(place: LocalCompute) -> None:
    order = made(place, an_order(place))
    place.trouble(Trouble.UNAVAILABLE, calls=2)
    assert isinstance(place.backend.look(order), Running)


def test_a_change_during_an_outage_is_temporary(place: LocalCompute) -> None:
    order = made(place, an_order(place))
    place.trouble(Trouble.UNAVAILABLE, Verb.DELETE)
    with pytest.raises(Temporary):
        place.backend.delete(order)
    assert isinstance(place.backend.look(order), Running)


def test_a_deletion_that_is_not_permitted_is_refused(place: LocalCompute) -> None:
    order = made(place, an_order(place))
    place.trouble(Trouble.FORBIDDEN, Verb.DELETE)
    assert refused(place.backend.delete(order)) is FailureKind.CONFIGURATION


@pytest.mark.emulators
@pytest.mark.enable_socket
def test_the_clients_speak_to_an_emulator_over_http() -> None:
    compute = Compute(a_state())
    server = Server(compute.plane)
    try:
        backend = ComputeBackend(clients(server.url.removeprefix("http://")), FakeClock(NOW))
        order = an_order(LocalCompute())
        assert backend.look(order) == Absent()
        order = replace(order, operation=started(backend.create(order)))
        compute.after(5)
        assert backend.look(order) == Begun("its workload policy")
        assert backend.inventory(self_managed(path=order.cluster_path))[0].name == order.name
    finally:
        server.stop()
