"""Where a setting says so, a slice that is kept warm comes to a claim of another namespace."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from relay.fact_queue import FactQueue
from tests.builders import a_job, a_record, a_request, settings
from tests.journeys.hosts.test_keys_of_hosts import closed, key
from tests.journeys.serving import own_slice, reason, serving
from tests.journeys.warm.test_handed_on import users
from tests.journeys.warm.test_kept_warm import orders
from tests.world import World
from tpu_slices.domain.model.capacity import FRESH, Across, NamespaceSettings, Warm
from tpu_slices.domain.model.clusters import Allowed, Policy
from tpu_slices.domain.model.facts import Heartbeat, Pinning, TemplateRequest
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import WorkloadUid
from tpu_slices.domain.planning.host_labels import NODE_POOL
from tpu_slices.domain.planning.keys import KEY_LABEL
from tpu_slices.domain.planning.pool_labels import ANY_NAMESPACE_LABEL, PARENT_NAMESPACE_LABEL
from tpu_slices.domain.records.limiters import Budget
from tpu_slices.ports.store import Change
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.fakes.store import FakeStore

FOR_ALL = Warm(lasts=timedelta(minutes=15), across=Across.CLUSTER)


NO_LIMIT = Policy()
FULL = Policy(chips_per_cluster=16)
"""So that a second slice waits for the first one's chips."""


def world_for_all(warm: Warm = FOR_ALL, policy: Policy = NO_LIMIT, **others: Any) -> World:
    return World(of_cluster=settings(warm=warm, policy=policy, **others))


def labels(world: World) -> set[tuple[str | None, str | None]]:
    """Return the keys that hosts carry, each with the namespace that they are for."""
    found = (node.raw["metadata"]["labels"] for node in world.cluster.nodes.values())
    return {(each.get(PARENT_NAMESPACE_LABEL), each.get(KEY_LABEL)) for each in found}


def test_its_hosts_are_made_for_no_namespace_and_become_its_claims_before_a_pod_comes() -> None:
    world = world_for_all()
    llama = world.jobset_appears("llama")
    world.settle(minutes=10, until=lambda: bool(world.cluster.nodes))
    assert labels(world) == {(None, world.record(llama).id)}
    assert all(node.raw["metadata"]["labels"][ANY_NAMESPACE_LABEL] == "true" for node in world.cluster.nodes.values())
    world.settle(minutes=5, until=lambda: llama.bound == {0})
    assert (labels(world), llama.bound) == ({("research", key(llama))}, {0})
    world.settle(minutes=2)
    assert (reason(world, llama), closed(world)) == (Reason.READY, [])


def test_a_job_of_another_namespace_gets_it() -> None:
    world, llama = serving("llama", world_for_all())
    world.ends(llama)
    world.settle(minutes=3)
    assert world.record(llama).reason is Reason.WARM
    assert "for the next slice, of namespace research or another one" in world.record(llama).message
    gemma = world.jobset_appears("gemma", namespace="vision")
    world.settle(minutes=5, until=lambda: gemma.bound == {0})
    record = world.record(gemma)
    assert (gemma.bound, orders(world), record.maker) == ({0}, [Verb.CREATE], own_slice(llama))
    world.settle(minutes=3)
    assert (labels(world), closed(world), reason(world, gemma)) == ({("vision", key(gemma))}, [], Reason.READY)
    got = next(each.message for each in record.transitions if each.message.startswith("Got"))
    assert got.startswith("Got a slice that namespace research gave back at 12:0"), "it names no workload"
    assert got.endswith("UTC: nothing was created.")


def test_a_job_that_waits_gets_it_as_it_becomes_warm() -> None:
    world, llama = serving("llama", world_for_all(policy=FULL))
    gemma = world.jobset_appears("gemma", namespace="vision")
    world.settle(minutes=10)
    assert gemma.bound == set()
    world.ends(llama)
    world.settle(minutes=3, until=lambda: gemma.bound == {0})
    assert (gemma.bound, world.record(gemma).maker) == ({0}, own_slice(llama))


def test_one_of_its_own_namespace_comes_first() -> None:
    world, llama = serving("llama", world_for_all(policy=FULL))
    gemma = world.jobset_appears("gemma", namespace="vision")
    world.settle(minutes=5)
    olmo = world.jobset_appears("olmo")
    world.settle(minutes=5)
    world.ends(llama)
    world.settle(minutes=3, until=lambda: bool(olmo.bound or gemma.bound))
    assert (olmo.bound, gemma.bound) == ({0}, set())


def test_by_default_nothing_of_it_is_in_the_labels_of_hosts() -> None:
    world, llama = serving("llama", world_for_all(Warm(lasts=timedelta(minutes=15))))
    assert labels(world) == {("research", key(llama))}
    assert all(ANY_NAMESPACE_LABEL not in node.raw["metadata"]["labels"] for node in world.cluster.nodes.values())


def test_what_was_made_before_the_setting_stays_in_its_namespace() -> None:
    world, llama = serving("llama", world_for_all(Warm(lasts=timedelta(minutes=15))))
    world.store.put_settings(replace(world.settings, version="settings-2", warm=FOR_ALL))
    world.ends(llama)
    world.settle(minutes=3)
    assert world.record(llama).reason is Reason.WARM
    gemma = world.jobset_appears("gemma", namespace="vision")
    world.settle(minutes=10)
    assert world.record(gemma).maker == own_slice(gemma)


def test_where_nothing_pins_pods_none_is_made_for_others() -> None:
    world = world_for_all()
    world.cluster.is_pinned_by(Pinning.NOTHING)
    world.settle(minutes=3)
    llama = world.jobset_appears("llama", request=a_request(exclusive_topology=NODE_POOL))
    world.settle(minutes=10, until=lambda: llama.bound == {0})
    assert llama.bound == {0}
    assert all(ANY_NAMESPACE_LABEL not in node.raw["metadata"]["labels"] for node in world.cluster.nodes.values())


def test_a_node_that_is_made_anew_fits_nobody_until_the_relay_gives_it_to_who_has_the_slice() -> None:
    world, llama = serving("llama", world_for_all())
    world.ends(llama)
    world.settle(minutes=3)
    gemma = world.jobset_appears("gemma", namespace="vision")
    world.settle(minutes=5, until=lambda: gemma.bound == {0})
    world.settle(minutes=2)
    node = next(iter(world.cluster.nodes.values()))
    made = {KEY_LABEL: str(world.record(gemma).id), PARENT_NAMESPACE_LABEL: None}
    world.cluster.changes_node(node, {"metadata": {"labels": made}})
    assert (None, world.record(gemma).id) in labels(world)
    world.settle(minutes=3)
    assert (labels(world), closed(world), gemma.bound) == ({("vision", key(gemma))}, [], {0})


def test_one_that_asks_for_fresh_hosts_gets_none_of_another_namespace() -> None:
    world, llama = serving("llama", world_for_all())
    world.ends(llama)
    world.settle(minutes=3)
    gemma = world.jobset_appears("gemma", request=fresh("true"), namespace="vision")
    world.settle(minutes=10)
    assert (gemma.bound, world.record(gemma).maker) == ({0}, own_slice(gemma))


def test_one_that_asks_for_fresh_hosts_gets_those_of_its_own_namespace() -> None:
    world, llama = serving("llama", world_for_all())
    world.ends(llama)
    world.settle(minutes=3)
    gemma = world.jobset_appears("gemma", request=fresh("true"))
    world.settle(minutes=5, until=lambda: gemma.bound == {0})
    assert world.record(gemma).maker == own_slice(llama)


def fresh(text: str) -> TemplateRequest:
    return a_request(requested_annotations=((FRESH, text),))


def test_its_own_setting_keeps_a_namespaces_slices_to_itself() -> None:
    own = NamespaceSettings(warm=Warm(lasts=timedelta(minutes=15)))
    world, llama = serving("llama", world_for_all(namespaces={"research": own}))
    world.ends(llama)
    world.settle(minutes=3)
    gemma = world.jobset_appears("gemma", namespace="vision")
    world.settle(minutes=10)
    assert world.record(gemma).maker == own_slice(gemma)


def test_a_setting_of_one_namespace_gives_its_slices_to_all() -> None:
    own, none = NamespaceSettings(warm=FOR_ALL), Warm(lasts=timedelta(0))
    world, llama = serving("llama", world_for_all(none, namespaces={"research": own}))
    world.ends(llama)
    world.settle(minutes=3)
    gemma = world.jobset_appears("gemma", namespace="vision")
    world.settle(minutes=5, until=lambda: gemma.bound == {0})
    assert world.record(gemma).maker == own_slice(llama)
    world.ends(gemma)
    world.settle(minutes=5)
    assert reason(world, gemma) is Reason.RELEASED, "of the namespace that has it now the setting keeps none"


def test_a_namespace_gets_none_beyond_its_limit_of_chips() -> None:
    policy = Policy(everyone=Allowed(chips_per_namespace=16))
    world, llama = serving("llama", world_for_all(policy=policy))
    olmo = world.jobset_appears("olmo", namespace="vision")
    world.settle(minutes=10, until=lambda: olmo.bound == {0})
    world.ends(llama)
    world.settle(minutes=3)
    gemma = world.jobset_appears("gemma", namespace="vision")
    world.settle(minutes=5)
    assert (gemma.bound, reason(world, gemma), reason(world, llama)) == (set(), Reason.CHIP_LIMIT_REACHED, Reason.WARM)
    assert world.store.chips_bought(world.settings.cluster, "vision") == 16


def test_its_chips_count_to_the_namespace_that_has_it() -> None:
    policy = Policy(everyone=Allowed(chips_per_namespace=16))
    world, llama = serving("llama", world_for_all(policy=policy))
    world.ends(llama)
    world.settle(minutes=3)
    gemma = world.jobset_appears("gemma", namespace="vision")
    world.settle(minutes=5, until=lambda: gemma.bound == {0})
    held = [world.store.chips_bought(world.settings.cluster, each) for each in ("research", "vision")]
    assert (held, gemma.bound) == ([0, 16], {0})
    olmo = world.jobset_appears("olmo")
    world.settle(minutes=10, until=lambda: olmo.bound == {0})
    assert olmo.bound == {0}, "its own namespace has room again"


def test_a_claim_that_waits_for_chips_where_a_slice_leaves_is_looked_at() -> None:
    policy = Policy(everyone=Allowed(chips_per_namespace=16))
    world, llama = serving("llama", world_for_all(policy=policy))
    smaller = world.jobset_appears("smaller", request=a_request(topology="2x4", chips_per_pod=8))
    gemma = world.jobset_appears("gemma", namespace="vision")
    world.settle(minutes=10, until=lambda: gemma.bound == {0})
    world.ends(llama)
    world.settle(minutes=15, until=lambda: smaller.bound == {0})
    assert smaller.bound == {0}


def test_the_policy_of_a_namespace_holds_for_what_it_gets() -> None:
    policy = Policy(namespaces={"vision": Allowed(accelerators=("tpu-v5p-slice",))})
    world, llama = serving("llama", world_for_all(policy=policy))
    world.ends(llama)
    world.settle(minutes=3)
    gemma = world.jobset_appears("gemma", namespace="vision")
    world.settle(minutes=5)
    assert (gemma.bound, reason(world, gemma), reason(world, llama)) == (set(), Reason.NOT_ALLOWED, Reason.WARM)


def test_each_namespace_keeps_the_hours_in_which_it_had_the_chips() -> None:
    world, llama = serving("llama", world_for_all())
    world.ends(llama)
    world.settle(minutes=3)
    gemma = world.jobset_appears("gemma", namespace="vision")
    world.settle(minutes=5, until=lambda: gemma.bound == {0})
    before = world.record(gemma).current.create_requested_at
    assert before is not None
    assert all(each.since > before for each in world.record(gemma).usages)
    assert world.record(llama).usages[-1].until is not None


def test_a_host_that_is_made_anew_while_no_relay_looks_takes_no_pod_of_any_namespace() -> None:
    """Nor of the former owner, whose JobSet is there again under its name."""
    world, llama = serving("llama", world_for_all())
    world.ends(llama)
    world.settle(minutes=3)
    gemma = world.jobset_appears("gemma", namespace="vision")
    world.settle(minutes=6)
    assert gemma.bound == {0}
    world.relay_is_dead = True
    node = next(iter(world.cluster.nodes.values()))
    made = {KEY_LABEL: str(world.record(gemma).id), PARENT_NAMESPACE_LABEL: None}
    world.cluster.changes_node(node, {"metadata": {"labels": made}})
    again = world.jobset_appears("llama")
    world.settle(minutes=2)
    assert users(world, llama) == {gemma.ref.owner.uid}
    world.relay_is_dead = False
    world.settle(minutes=15)
    assert users(world, llama) == {gemma.ref.owner.uid}
    assert (again.bound, world.record(again).maker, closed(world)) == ({0}, own_slice(again), [])
    assert labels(world) == {("vision", key(gemma)), ("research", key(again))}


def test_a_gang_takes_what_another_namespace_gave_back_and_buys_the_rest() -> None:
    world, llama = serving("llama", world_for_all())
    world.ends(llama)
    world.settle(minutes=3)
    gang = world.jobset_appears("gemma", 2, a_request(gang="all"), namespace="vision")
    world.settle(minutes=15, until=lambda: gang.served)
    assert (gang.served, orders(world)) == (True, [Verb.CREATE, Verb.CREATE])


def test_a_gang_gets_none_beyond_its_namespaces_limit_and_no_half_of_it_runs() -> None:
    policy = Policy(namespaces={"vision": Allowed(chips_per_namespace=16)})
    world, llama = serving("llama", world_for_all(policy=policy))
    world.ends(llama)
    world.settle(minutes=3)
    gang = world.jobset_appears("gemma", 2, a_request(gang="all"), namespace="vision")
    world.settle(minutes=8)
    assert (gang.bound, world.store.chips_bought(world.settings.cluster, "vision")) == (set(), 0)
    assert reason(world, llama) is Reason.WARM


def test_a_purchase_of_its_namespace_at_the_same_time_keeps_it_within_its_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    policy = Policy(everyone=Allowed(chips_per_namespace=16))
    world, llama = serving("llama", world_for_all(policy=policy))
    world.ends(llama)
    world.settle(minutes=3)
    commit, others = FakeStore.commit, list[str]()

    def overtaken(store: FakeStore, *changes: Change) -> Any:
        hands_over = any(isinstance(each.after, Budget) for each in changes) and not others
        if hands_over:
            others.append("bought")
            bought = a_record(job=a_job(name="olmo", uid=WorkloadUid("uid-olmo"), namespace="vision"))
            budget = world.store.budget(world.settings.cluster)
            before = budget.value if budget is not None else Budget.of(world.settings.cluster, world.clock.now())
            counted = replace(before, creations=before.creations + 1)
            commit(
                store, Change(budget, counted), Change(None, bought.with_current(create_requested_at=world.clock.now()))
            )
        return commit(store, *changes)

    monkeypatch.setattr(FakeStore, "commit", overtaken)
    gemma = world.jobset_appears("gemma", namespace="vision")
    world.settle(minutes=4)
    assert (others, gemma.bound, reason(world, gemma)) == (["bought"], set(), Reason.CHIP_LIMIT_REACHED)
    assert world.store.chips_bought(world.settings.cluster, "vision") <= 16


def has_a_relay_of_before(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    heartbeat = FactQueue._beat

    def of_before(queue: FactQueue, *told: Any) -> Any:
        due = heartbeat(queue, *told)
        (beat,) = due.facts
        assert isinstance(beat, Heartbeat)
        return replace(due, facts=(replace(beat, hands_across=False),))

    monkeypatch.setattr(FactQueue, "_beat", of_before)
    world.settle(minutes=3)


def test_a_relay_of_before_has_slices_made_for_one_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_for_all()
    has_a_relay_of_before(world, monkeypatch)
    _, llama = serving("llama", world)
    assert labels(world) == {("research", key(llama))}


def test_nobody_gets_one_whose_hosts_the_relay_cannot_say_a_namespace_of(monkeypatch: pytest.MonkeyPatch) -> None:
    world, llama = serving("llama", world_for_all())
    world.ends(llama)
    world.settle(minutes=2)
    assert world.record(llama).reason is Reason.WARM
    has_a_relay_of_before(world, monkeypatch)
    olmo = world.jobset_appears("olmo")
    world.settle(minutes=10, until=lambda: olmo.bound == {0})
    assert olmo.bound == {0}
    assert orders(world).count(Verb.CREATE) == 2
