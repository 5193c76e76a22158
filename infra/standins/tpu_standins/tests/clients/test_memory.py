"""What is remembered of a kind never goes back, whatever the order in which lists, events and answers come."""

from __future__ import annotations

import pytest

from tpu_standins.clients.kinds import KINDS
from tpu_standins.clients.memory import Memory, WentBack
from tpu_standins.clients.objects import Object


def pod(version: int, name: str = "a", uid: str = "u", **metadata: object) -> Object:
    own = {"name": name, "namespace": "default", "uid": uid, "resourceVersion": str(version)}
    return {"metadata": own | metadata}


DELETED = {"kind": "Status", "details": {"name": "a", "kind": "pods", "uid": "u"}}


def listed(*pods: Object, version: int = 10) -> Memory:
    memory = Memory(KINDS["pods"])
    memory.listed(pods, version)
    return memory


def versions(memory: Memory) -> dict[str, str]:
    return {each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in memory.all()}


def test_objects_of_a_list_get_the_type_that_lists_leave_out() -> None:
    assert listed(pod(5)).all() == [{"apiVersion": "v1", "kind": "Pod"} | pod(5)]


def test_objects_are_found_by_namespace_and_name() -> None:
    memory = listed(pod(5), pod(6, "b", "v", namespace="team"))
    assert [each["metadata"]["name"] for each in memory.all("team")] == ["b"]
    assert memory.get("default", "a") is not None
    assert memory.get("team", "a") is None


def test_events_add_change_and_remove() -> None:
    memory = listed()
    assert memory.saw("ADDED", pod(11))
    assert memory.saw("MODIFIED", pod(12))
    assert versions(memory) == {"a": "12"}
    assert memory.saw("DELETED", pod(13))
    assert versions(memory) == {}


def test_a_bookmark_is_no_change_but_moves_the_version() -> None:
    memory = listed()
    assert not memory.saw("BOOKMARK", {"metadata": {"resourceVersion": "20"}})
    assert memory.version == 20


def test_an_own_write_is_known_before_its_event_comes_which_changes_nothing() -> None:
    memory = listed(pod(5))
    assert memory.wrote(pod(15))
    assert not memory.saw("MODIFIED", pod(12))
    assert versions(memory) == {"a": "15"}
    assert not memory.saw("MODIFIED", pod(15))


def test_the_answer_to_a_write_that_the_watch_has_passed_brings_nothing_back() -> None:
    memory = listed(pod(5))
    memory.saw("DELETED", pod(16))
    assert not memory.wrote(pod(15))
    assert versions(memory) == {}


def test_what_was_deleted_is_gone_although_older_events_still_come() -> None:
    memory = listed(pod(5))
    assert memory.deleted(("default", "a"), DELETED)
    assert not memory.saw("MODIFIED", pod(12))
    assert versions(memory) == {}
    assert not memory.saw("DELETED", pod(13))
    assert memory.saw("ADDED", pod(14, uid="next"))


@pytest.mark.parametrize("answer", [DELETED, pod(12)], ids=["a Status", "the object"])
def test_another_object_of_its_name_that_came_before_the_answer_stays(answer: Object) -> None:
    memory = listed(pod(5))
    memory.saw("DELETED", pod(12))
    memory.saw("ADDED", pod(13, uid="next"))
    assert not memory.deleted(("default", "a"), answer)
    assert memory.saw("MODIFIED", pod(14, uid="next"))
    assert versions(memory) == {"a": "14"}


def test_what_waits_for_its_end_stays_with_its_mark() -> None:
    memory = listed(pod(5))
    marked = pod(15, deletionTimestamp="2026-01-01T00:00:30Z", deletionGracePeriodSeconds=30)
    assert memory.deleted(("default", "a"), marked)
    assert versions(memory) == {"a": "15"}


@pytest.mark.parametrize("waits", [{"finalizers": ["x"]}, {"deletionGracePeriodSeconds": 30}, {}])
def test_only_finalizers_or_grace_keep_what_was_deleted(waits: Object) -> None:
    memory = listed(pod(5))
    memory.deleted(("default", "a"), pod(15, deletionTimestamp="2026-01-01T00:00:30Z", **waits))
    assert bool(versions(memory)) == bool(waits)


def test_a_list_replaces_all_but_later_own_writes() -> None:
    memory = listed(pod(5), pod(6, "b", "v"))
    memory.wrote(pod(25, "c", "w"))
    memory.wrote(pod(26))
    assert memory.listed([pod(12)], 20)
    assert versions(memory) == {"a": "26", "c": "25"}


def test_a_list_that_was_asked_for_before_a_deletion_does_not_undo_it() -> None:
    memory = listed(pod(5))
    memory.deleted(("default", "a"), DELETED)
    memory.listed([pod(5)], 20)
    assert versions(memory) == {}


def test_the_same_list_again_is_no_change() -> None:
    memory = listed(pod(5))
    assert not memory.listed([pod(5)], 20)


def test_a_server_that_lost_what_it_had_is_noticed_and_then_believed() -> None:
    memory = listed(pod(5), version=100)
    memory.wrote(pod(105, "b", "v"))
    with pytest.raises(WentBack, match="pods went back from version 100 to 7"):
        memory.saw("BOOKMARK", {"metadata": {"resourceVersion": "7"}})
    memory.listed([pod(3, "c", "w")], 8)
    assert (versions(memory), memory.version) == ({"c": "3"}, 8)
