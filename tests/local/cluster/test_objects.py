import asyncio
from typing import Any

import pytest

from infra.local.cluster.objects import ApiError
from tests.local.cluster.world import World, job, jobset, node, owned_by, pod


def names(world: World, plural: str) -> list[str]:
    return [obj["metadata"]["name"] for obj in world.objects.list(plural)]


def kinds(world: World, plural: str) -> list[str]:
    return [change.type for change in world.objects.changes(plural, 0)]


def test_a_new_object_has_an_identity_a_birthday_and_a_version() -> None:
    world = World()
    made = world.objects.create("pods", pod())["metadata"]
    assert made["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert made["generation"] == 1
    assert made["resourceVersion"] == str(world.objects.version)
    assert len(made["uid"]) == 36


def test_what_is_returned_is_a_copy() -> None:
    world = World()
    world.objects.create("pods", pod())["spec"]["containers"].clear()
    world.objects.get("pods", "default", "one")["spec"]["containers"].clear()
    world.objects.list("pods")[0]["spec"]["containers"].clear()
    assert world.objects.get("pods", "default", "one")["spec"]["containers"]


def test_a_generated_name_keeps_its_base() -> None:
    world = World()
    unnamed = pod()
    unnamed["metadata"] = {"namespace": "default", "generateName": "train-0-"}
    first = world.objects.create("pods", unnamed)["metadata"]["name"]
    second = world.objects.create("pods", unnamed)["metadata"]["name"]
    assert first.startswith("train-0-")
    assert len(first) == len("train-0-") + 5
    assert first != second


def test_a_name_is_taken_once() -> None:
    world = World()
    world.objects.create("pods", pod())
    with pytest.raises(ApiError, match='pods "one" already exists') as refused:
        world.objects.create("pods", pod())
    assert (refused.value.code, refused.value.reason) == (409, "AlreadyExists")


def test_what_is_not_there_is_not_found() -> None:
    with pytest.raises(ApiError, match=r'jobsets\.jobset\.x-k8s\.io "none" not found') as missing:
        World().objects.get("jobsets", "default", "none")
    assert missing.value.status()["details"] == {"name": "none", "group": "jobset.x-k8s.io", "kind": "jobsets"}


def test_an_update_of_an_older_version_is_a_conflict() -> None:
    world = World()
    old = world.objects.create("pods", pod())
    world.objects.update("pods", old | {"metadata": old["metadata"] | {"labels": {"a": "b"}}})
    with pytest.raises(ApiError, match="the object has been modified") as refused:
        world.objects.update("pods", old)
    assert (refused.value.code, refused.value.reason) == (409, "Conflict")


def test_an_update_without_a_version_is_unconditional() -> None:
    world = World()
    world.objects.create("pods", pod())
    changed = world.objects.update("pods", pod(labels={"a": "b"}) | {"spec": world.objects.list("pods")[0]["spec"]})
    assert changed["metadata"]["labels"] == {"a": "b"}


def test_an_update_that_changes_nothing_is_no_event() -> None:
    world = World()
    made = world.objects.create("jobsets", jobset())
    assert world.objects.update("jobsets", made) == made
    assert kinds(world, "jobsets") == ["ADDED"]


def test_the_generation_counts_changes_of_the_spec_alone() -> None:
    world = World()
    made = world.objects.create("jobsets", jobset())
    labelled = world.objects.update("jobsets", made | {"metadata": made["metadata"] | {"labels": {"a": "b"}}})
    suspended = world.objects.update("jobsets", labelled | {"spec": labelled["spec"] | {"suspend": True}})
    assert [obj["metadata"]["generation"] for obj in (made, labelled, suspended)] == [1, 1, 2]


def test_status_is_written_through_its_own_door_only() -> None:
    world = World()
    made = world.objects.create("jobsets", jobset() | {"status": {"restarts": 7}})
    assert "status" not in made
    changed = made | {"status": {"restarts": 1}, "spec": made["spec"] | {"suspend": True}}
    assert "status" not in world.objects.update("jobsets", made | {"status": {"restarts": 1}})
    written = world.objects.update("jobsets", changed, status=True)
    assert (written["status"], written["metadata"]["generation"]) == ({"restarts": 1}, 1)
    assert "suspend" not in written["spec"]


def test_a_node_registers_with_its_status() -> None:
    made = World().objects.create("nodes", node() | {"status": {"capacity": {"google.com/tpu": "4"}}})
    assert made["status"] == {"capacity": {"google.com/tpu": "4"}}


def test_finalizers_keep_an_object_until_the_last_one_went() -> None:
    world = World()
    kept = jobset()
    kept["metadata"]["finalizers"] = ["example.com/a", "example.com/b"]
    world.objects.create("jobsets", kept)
    going = world.objects.delete("jobsets", "default", "train")
    assert going["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:00Z"
    for left in (["example.com/b"], []):
        assert names(world, "jobsets") == ["train"]
        going["metadata"]["finalizers"] = left
        going = world.objects.update("jobsets", going)
    assert names(world, "jobsets") == []
    assert kinds(world, "jobsets") == ["ADDED", "MODIFIED", "MODIFIED", "DELETED"]


def test_a_going_object_takes_no_new_finalizer() -> None:
    world = World()
    kept = jobset()
    kept["metadata"]["finalizers"] = ["example.com/a"]
    world.objects.create("jobsets", kept)
    going = world.objects.delete("jobsets", "default", "train")
    going["metadata"]["finalizers"] = ["example.com/a", "example.com/late"]
    with pytest.raises(ApiError, match="no new finalizers can be added if the object is being deleted"):
        world.objects.update("jobsets", going)


def test_a_pod_on_a_node_stays_for_its_grace_period_until_the_kubelet_lets_go() -> None:
    world = World()
    world.objects.create("pods", pod(node="host"))
    going = world.objects.delete("pods", "default", "one")["metadata"]
    assert (going["deletionTimestamp"], going["deletionGracePeriodSeconds"]) == ("2026-01-01T00:00:00Z", 30)
    world.objects.delete("pods", "default", "one", grace_seconds=0)
    assert names(world, "pods") == []


def test_a_second_deletion_may_only_shorten_the_grace_period() -> None:
    world = World()
    world.objects.create("pods", pod(node="host"))
    graces = [
        world.objects.delete("pods", "default", "one", grace_seconds=seconds)["metadata"] for seconds in (20, 60, 5)
    ]
    assert [grace["deletionGracePeriodSeconds"] for grace in graces] == [20, 20, 5]


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_goes_at_once(phase: str) -> None:
    world = World()
    made = world.objects.create("pods", pod(node="host"))
    world.objects.update("pods", made | {"status": {"phase": phase}}, status=True)
    world.objects.delete("pods", "default", "one")
    assert names(world, "pods") == []


def test_a_pod_without_a_node_goes_at_once() -> None:
    world = World()
    world.objects.create("pods", pod())
    world.objects.delete("pods", "default", "one")
    assert names(world, "pods") == []


def family(world: World, *, blocks: bool = False) -> None:
    """Create a JobSet, its Job, and the Job's pod on a node."""
    top = world.objects.create("jobsets", jobset())
    middle = world.objects.create("jobs", job(**owned_by(top, blocks=blocks)))
    world.objects.create("pods", pod(node="host", **owned_by(middle, blocks=blocks)))


def test_dependents_are_collected_behind_their_owner() -> None:
    world = World()
    family(world)
    world.objects.delete("jobsets", "default", "train")
    assert (names(world, "jobsets"), names(world, "jobs")) == ([], [])
    assert "deletionTimestamp" in world.objects.get("pods", "default", "one")["metadata"]


def test_a_foreground_deletion_waits_for_the_dependents_that_block_it() -> None:
    world = World()
    family(world, blocks=True)
    world.objects.delete("jobsets", "default", "train", propagation="Foreground")
    assert (names(world, "jobsets"), names(world, "jobs"), names(world, "pods")) == (["train"], ["work"], ["one"])
    world.objects.delete("pods", "default", "one", grace_seconds=0)
    assert (names(world, "jobsets"), names(world, "jobs"), names(world, "pods")) == ([], [], [])


def test_a_foreground_deletion_does_not_wait_for_dependents_that_do_not_block() -> None:
    world = World()
    family(world)
    world.objects.delete("jobsets", "default", "train", propagation="Foreground")
    assert names(world, "jobsets") == []


def test_orphans_stay() -> None:
    world = World()
    family(world)
    world.objects.delete("jobsets", "default", "train", propagation="Orphan")
    assert "ownerReferences" not in world.objects.get("jobs", "default", "work")["metadata"]


def test_a_dependent_stays_while_another_owner_lives() -> None:
    world = World()
    first, second = (world.objects.create("jobsets", jobset(name)) for name in ("first", "second"))
    references = [r | {"controller": False} for o in (first, second) for r in owned_by(o)["ownerReferences"]]
    world.objects.create("jobs", job(ownerReferences=references))
    world.objects.delete("jobsets", "default", "first")
    kept = world.objects.get("jobs", "default", "work")["metadata"]["ownerReferences"]
    assert [reference["name"] for reference in kept] == ["second"]


def test_an_unknown_propagation_is_refused() -> None:
    world = World()
    family(world)
    with pytest.raises(ApiError, match='Unsupported value: "Sideways"'):
        world.objects.delete("jobsets", "default", "train", propagation="Sideways")


def test_a_namespace_goes_when_its_last_object_went() -> None:
    world = World()
    world.objects.create("namespaces", {"metadata": {"name": "team"}})
    lodger: dict[str, Any] = pod(node="host")
    lodger["metadata"]["namespace"] = "team"
    world.objects.create("pods", lodger)
    going = world.objects.delete("namespaces", None, "team")
    assert going["status"] == {"phase": "Terminating"}
    with pytest.raises(ApiError, match="because it is being terminated"):
        world.objects.create("pods", lodger | {"metadata": {"name": "late", "namespace": "team"}})
    world.objects.delete("pods", "team", "one", grace_seconds=0)
    assert names(world, "namespaces") == ["default", "kube-system"]


def test_the_first_namespaces_are_there_to_stay() -> None:
    with pytest.raises(ApiError, match="this namespace may not be deleted"):
        World().objects.delete("namespaces", None, "kube-system")


def test_nothing_is_created_in_a_namespace_that_is_not_there() -> None:
    stray = pod()
    stray["metadata"]["namespace"] = "nowhere"
    with pytest.raises(ApiError, match='namespaces "nowhere" not found'):
        World().objects.create("pods", stray)


def test_waiting_for_a_change_ends_with_it() -> None:
    async def story() -> int:
        world = World()
        waiting = asyncio.create_task(world.objects.changed(world.objects.version))
        await asyncio.sleep(0)
        world.objects.create("pods", pod())
        return await waiting - world.objects.version

    assert asyncio.run(story()) == 0


def test_changes_before_the_window_are_gone() -> None:
    world = World(window=3)
    for index in range(5):
        world.objects.create("pods", pod(f"pod-{index}"))
    newest = world.objects.version
    assert len(world.objects.changes("pods", newest - 3)) == 3
    with pytest.raises(ApiError, match="too old resource version") as gone:
        world.objects.changes("pods", newest - 4)
    assert (gone.value.code, gone.value.reason) == (410, "Expired")
