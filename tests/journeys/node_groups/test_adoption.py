"""A cluster moves over from TPU operator: its slice is adopted, and goes with its TPUNodeGroup.

The slice is on the local Compute Engine, under the real adapter; nodes are labelled by the relay's own labeler.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from relay.node_groups.labeler import NodeLabeler
from tests.adapters.compute_stories import COMPUTE
from tests.builders import CLUSTER
from tests.contracts.compute_steps import PARTS, TEMPLATES
from tests.domain.planning.test_node_groups import self_managed
from tests.node_groups import Json, changed, of_a_template, two_hosts
from tests.on_compute import OnCompute
from tests.operator_objects import changed_object, operators_objects
from tpu_slices.domain.model.clusters import PoolSettings
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.node_groups import FINALIZER, NodesExpected
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import ClusterId, PoolName
from tpu_slices.domain.planning.pool_labels import ATTEMPT_LABEL, SLICE_ID_LABEL
from tpu_slices.domain.planning.tpu_operator import PartNames
from tpu_slices.flows.adopt import AdoptionPlan, adopt_groups, survey_groups
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.wire.operator_objects import operator_groups
from tpu_slices_simulator import objects
from tpu_standins.compute.state import Kind

MANIFEST = changed(two_hosts("group"), instanceConfig__provisioningModel=None, instanceConfig__reservation=None)


class OfOperator(OnCompute):
    """A cluster in which TPU operator made a slice and was stopped; no relay runs yet."""

    def __init__(self, manifest: Json | None = None, template: str | None = None) -> None:
        super().__init__(self_managed(pools=PoolSettings(compute=COMPUTE)))
        self.relay_is_dead = True
        if template is not None:
            template = self.place.bring_template(template)
        self.group = self.group_appears(manifest or MANIFEST)
        [raw, *self.parts] = operators_objects(self.group.ref.owner, manifest or MANIFEST)
        self.group.manifest = {**raw, "metadata": {"finalizers": raw["metadata"]["finalizers"]}}
        self.names: PartNames = self.place.hold_operators_slice(self.group.ref.owner, template)
        self.hosts = {node["metadata"]["name"]: node for node in map(_operators_node, self.place.running().values())}
        """Nodes that lack our labels, which the relay sees by looking for them only."""
        self._labeler = NodeLabeler(self, self.clock.now)
        self._expected = 0

    def adopts(self) -> AdoptionPlan:
        return adopt_groups(CLUSTER, operator_groups([self.group.raw, *self.parts]), self.deps)

    def hands_over(self) -> None:
        """Let a person run what `slices adopt --handover` prints."""
        self.group.manifest["metadata"]["finalizers"] = []
        self.cluster.changes(self.group)

    def runs_relay(self) -> None:
        self.relay_is_dead = False
        self.lives(minutes=3)

    def machines_join(self, **_: int) -> None:
        """Let the relay label what it was told to expect."""
        questions = [each for _, each in self.publisher.questions]
        for question in questions[self._expected :] if self.cluster.relays else ():
            if isinstance(question, NodesExpected):
                self._labeler.expect(question)
        self._expected = len(questions) if self.cluster.relays else self._expected
        self._labeler.look()

    # as the API server, for the labeler

    def nodes(self) -> Sequence[Mapping[str, Any]]:
        return [*self.hosts.values()]

    def patch_node(self, node: str, patch: Mapping[str, Any]) -> None:
        self.hosts[node] = objects.patched(self.hosts[node], patch)
        self.cluster.joins(self.hosts[node])

    # what there is

    @property
    def on_compute(self) -> list[str]:
        return [name for name in self.names if self.place.stands(PoolName(name))]


def _operators_node(vm: Any) -> dict[str, Any]:
    labels = {
        "cloud.google.com/gke-tpu-accelerator": "tpu7x",
        "cloud.google.com/gke-tpu-topology": "2x2x2",
        "cloud.google.com/gke-accelerator-count": "4",
    }
    node = objects.node(vm.path.name, labels, "4")
    return {**node, "spec": {"providerID": vm.provider_id}}


@pytest.fixture
def world() -> OfOperator:
    return OfOperator()


def test_a_slice_that_runs_is_adopted_and_neither_a_host_nor_a_status_changes(world: OfOperator) -> None:
    before = (len(world.place.requests()), world.place.running(), json.dumps(world.group.manifest["status"]))
    plan = world.adopts()
    world.lives(minutes=30)
    assert [adoption.why for adoption in plan.adoptions] == ["adopted: kept until its TPUNodeGroup is deleted"]
    record = world.record(world.group)
    assert (record.phase, record.reason, record.pool) == (Phase.READY, Reason.ADOPTED, world.names.group)
    after = (len(world.place.requests()), world.place.running(), json.dumps(world.group.manifest["status"]))
    assert after == before


def test_the_relay_labels_its_hosts_and_it_is_ready_as_any_other(world: OfOperator) -> None:
    pod = {
        "metadata": {"namespace": "default", "name": "worker-0"},
        "spec": {"nodeName": min(world.hosts)},
        "status": {},
    }
    world.cluster.other_pods["default/worker-0"] = pod
    lives = {path: vm.life for path, vm in world.place.running().items()}
    world.adopts()
    world.hands_over()
    world.runs_relay()
    labels = [node["metadata"]["labels"] for node in world.hosts.values()]
    assert {(each[SLICE_ID_LABEL], each[ATTEMPT_LABEL]) for each in labels} == {(world.record(world.group).name, "0")}
    world.lives(minutes=60)
    assert world.reasons(world.group)["Ready"] == "Ready"
    assert world.status(world.group)["nodeSummary"] == {"ready": 2, "reconciling": 0, "failed": 0}
    assert (world.record(world.group).reason, {name for name, _ in world.place.described()}) == (
        Reason.READY,
        {*world.names},
    )
    assert {path: vm.life for path, vm in world.place.running().items()} == lives
    assert list(world.cluster.other_pods) == ["default/worker-0"]


def test_its_policy_template_and_machines_go_with_it(world: OfOperator) -> None:
    world.adopts()
    world.hands_over()
    world.runs_relay()
    world.group_is_deleted(world.group)
    world.lives(minutes=12)
    assert (world.on_compute, world.stands(world.group), world.cluster.nodes) == ([], False, {})
    assert world.record(world.group).phase is Phase.GONE
    assert world.place.requests()[-3:] == [f"{each}.delete" for each in reversed(PARTS)]


def test_a_template_of_the_users_stays_when_it_goes() -> None:
    world = OfOperator({**of_a_template("group")}, template="our-hosts")
    world.adopts()
    world.hands_over()
    world.runs_relay()
    assert world.reasons(world.group)["InstanceTemplateReady"] == "ExternalTemplate"
    world.group_is_deleted(world.group)
    world.lives(minutes=12)
    assert (world.on_compute, world.place.stands(PoolName("our-hosts"))) == ([], {TEMPLATES})


def test_a_group_that_tpu_operator_still_holds_is_not_bought_a_second_slice(world: OfOperator) -> None:
    requests = len(world.place.requests())
    world.runs_relay()
    world.lives(minutes=30)
    assert (world.records, len(world.place.requests())) == ({}, requests)
    assert FINALIZER not in world.group.manifest["metadata"]["finalizers"]


def test_adopting_again_at_any_time_changes_nothing_more(world: OfOperator) -> None:
    world.adopts()
    commits = len(world.store.commits)
    steps: tuple[Callable[[], object], ...] = (bool, world.hands_over, world.runs_relay)
    for step in steps:
        step()
        plan = world.adopts()
        assert ([each.why for each in plan.adoptions], plan.changes) == (["already adopted"], ())
    world.adopts()
    assert world.record(world.group).pool == world.names.group
    assert len(world.place.described()) == len(PARTS)
    assert commits < len(world.store.commits)


def test_a_survey_changes_nothing(world: OfOperator) -> None:
    plan = survey_groups(CLUSTER, operator_groups([world.group.raw, *world.parts]), world.deps)
    assert ([len(changes) for changes in plan.changes], world.store.commits) == ([2], [])


def test_what_is_adopted_and_not_handed_over_yet_is_kept_however_long_that_takes(world: OfOperator) -> None:
    requests = len(world.place.requests())
    world.adopts()
    world.runs_relay()
    world.lives(minutes=120)
    assert (world.record(world.group).reason, len(world.place.requests())) == (Reason.READY, requests)
    assert FINALIZER not in world.group.manifest["metadata"]["finalizers"]


def test_an_adoption_that_ended_half_way_buys_nothing_and_is_finished_by_the_next(world: OfOperator) -> None:
    plan = survey_groups(CLUSTER, operator_groups([world.group.raw, *world.parts]), world.deps)
    world.store.commit(plan.changes[0][0])
    requests = len(world.place.requests())
    world.runs_relay()
    world.lives(minutes=60)
    assert len(world.place.requests()) == requests
    world.adopts()
    world.hands_over()
    world.lives(minutes=15, until=lambda: world.record(world.group).reason is Reason.READY)
    assert (world.record(world.group).reason, world.record(world.group).pool) == (Reason.READY, world.names.group)


def test_a_group_of_machines_that_somebody_deleted_is_not_adopted(world: OfOperator) -> None:
    world.place.vanish(PoolName(world.names.group))
    assert ["Compute Engine has no such group" in each.why for each in world.adopts().adoptions] == [True]
    assert world.records == {}


def test_a_half_made_group_is_left_to_tpu_operator(world: OfOperator) -> None:
    *rest, group = world.parts
    world.parts = [*rest, changed_object(group, status__url=None)]
    assert ["TPU operator has not made" in each.why for each in world.adopts().adoptions] == [True]
    assert world.records == {}


def test_a_group_that_is_being_deleted_is_left_to_tpu_operator(world: OfOperator) -> None:
    world.group.state = WorkloadState.DELETED
    assert ["it is being deleted" in each.why for each in world.adopts().adoptions] == [True]
    assert world.records == {}


def test_machines_that_vanish_later_are_made_again_under_a_name_of_ours(world: OfOperator) -> None:
    world.adopts()
    world.hands_over()
    world.runs_relay()
    world.place.vanish(PoolName(world.names.group))
    world.lives(minutes=15)
    record = world.record(world.group)
    assert (record.attempt, world.place.stands(record.pool)) == (1, set(PARTS))
    assert world.on_compute == []


def test_without_settings_or_without_compute_engine_it_is_an_error(world: OfOperator) -> None:
    with pytest.raises(Permanent, match="slices configure"):
        adopt_groups(ClusterId("unknown"), (), world.deps)
    world.place.break_down(Kind.INTERNAL)
    with pytest.raises(Temporary):
        world.adopts()
    assert world.records == {}
