"""Field sets and field ownership, without a server."""

from typing import Any

import pytest

from infra.local.cluster import field_rules, topology
from infra.local.cluster.field_merge import merged, without
from infra.local.cluster.field_sets import (
    Path,
    compare,
    fields,
    from_fields_v1,
    shown,
    to_fields_v1,
    undeclared,
    with_parents,
)
from infra.local.cluster.shapes import shape

POD = field_rules.struct("V1Pod")
JOBSET = field_rules.struct("JobSet")


def seen(paths: Any) -> set[str]:
    return {shown(path) for path in paths}


def spec(**more: Any) -> dict[str, Any]:
    return {"spec": more}


def test_an_object_has_its_leaves_its_items_and_its_entries() -> None:
    pod = {
        "metadata": {"labels": {"app": "a"}, "finalizers": ["x/y"]},
        "spec": {
            "containers": [{"name": "main", "image": "i", "ports": [{"containerPort": 80}]}],
            "tolerations": [{"key": "k"}],
            "nodeSelector": {"a": "b"},
            "securityContext": {},
        },
    }
    assert seen(fields(POD, pod)) == {
        ".metadata.labels.app",
        '.metadata.finalizers[="x/y"]',
        '.spec.containers[name="main"]',
        '.spec.containers[name="main"].name',
        '.spec.containers[name="main"].image',
        '.spec.containers[name="main"].ports[containerPort=80,protocol="TCP"]',
        '.spec.containers[name="main"].ports[containerPort=80,protocol="TCP"].containerPort',
        ".spec.tolerations",
        ".spec.nodeSelector",
        ".spec.securityContext",
    }


def test_the_jobs_of_a_jobset_are_known_by_name() -> None:
    jobset = spec(replicatedJobs=[{"name": "a", "replicas": 2}])
    assert '.spec.replicatedJobs[name="a"].replicas' in seen(fields(JOBSET, jobset))


def test_a_comparison_tells_what_came_changed_and_went() -> None:
    old = spec(containers=[{"name": "a", "image": "1", "tty": True}], priority=1)
    new = spec(containers=[{"name": "a", "image": "2"}, {"name": "b"}], priority=1)
    change = compare(POD, old, new)
    assert seen(change.added) == {'.spec.containers[name="b"]', '.spec.containers[name="b"].name'}
    assert seen(change.modified) == {'.spec.containers[name="a"].image'}
    assert seen(change.removed) == {'.spec.containers[name="a"].tty'}


def test_a_map_that_is_new_is_a_field_beside_its_entries() -> None:
    change = compare(POD, {"metadata": {}}, {"metadata": {"labels": {"a": "b"}}})
    assert seen(change.added) == {".metadata.labels", ".metadata.labels.a"}


def test_fields_v1_are_written_and_read() -> None:
    written = {"f:metadata": {"f:labels": {".": {}, "f:a": {}}}, "f:spec": {"f:priority": {}}}
    paths = from_fields_v1(written)
    assert seen(paths) == {".metadata.labels", ".metadata.labels.a", ".spec.priority"}
    assert to_fields_v1(paths) == written


def deep(levels: int) -> dict[str, Any]:
    return {"f:a": deep(levels - 1)} if levels else {}


@pytest.mark.parametrize("broken", [{"spec": {}}, {"f:spec": 1}, {"k:[1]": {}}, {"v:x": {}}, {"": {}}, deep(100)])
def test_other_things_are_no_fields_v1(broken: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"is not a path element|unexpected character"):
        from_fields_v1(broken)


def test_the_lists_that_merge_are_lists_of_objects_with_these_keys() -> None:
    for where, keys in topology.KEYED_LISTS.items():
        owner, _, name = where.partition(".")
        element = shape(owner)[name].type.element
        assert element is not None, where
        assert set(keys) <= set(shape(element.name)), where
    for where in topology.SETS:
        owner, _, name = where.partition(".")
        assert shape(owner)[name].type.form == "list", where
    for where in topology.ATOMIC:
        owner, _, name = where.partition(".")
        assert not name or shape(owner)[name].type.form == "map", where


def test_lists_are_merged_by_their_keys_and_atomic_ones_replaced() -> None:
    live = spec(containers=[{"name": "a", "image": "1"}, {"name": "b"}], tolerations=[{"key": "x"}])
    applied = spec(containers=[{"name": "c"}, {"name": "a", "tty": True}], tolerations=[{"key": "y"}])
    assert merged(POD, live, applied) == spec(
        containers=[{"name": "c"}, {"name": "a", "image": "1", "tty": True}, {"name": "b"}],
        tolerations=[{"key": "y"}],
    )


def test_sets_are_joined() -> None:
    live, applied = {"metadata": {"finalizers": ["a", "b"]}}, {"metadata": {"finalizers": ["b", "c"]}}
    assert merged(POD, live, applied) == {"metadata": {"finalizers": ["a", "b", "c"]}}


def test_a_field_is_taken_away_with_all_below_it_and_what_is_empty_then() -> None:
    pod = spec(containers=[{"name": "a", "image": "1"}, {"name": "b"}], securityContext={"runAsUser": 1}, priority=1)
    gone: list[Path] = [
        ("f:spec", "f:containers", 'k:{"name":"b"}'),
        ("f:spec", "f:containers", 'k:{"name":"a"}', "f:image"),
        ("f:spec", "f:securityContext", "f:runAsUser"),
    ]
    assert without(POD, pod, gone) == spec(containers=[{"name": "a"}], priority=1)


def test_named_fields_on_the_way_are_members_too() -> None:
    paths = [("f:spec", "f:containers", 'k:{"name":"a"}', "f:image")]
    assert seen(with_parents(paths)) == {".spec", ".spec.containers", '.spec.containers[name="a"].image'}


def test_a_field_that_no_schema_declares_is_named_by_its_path() -> None:
    jobset = spec(replicatedJobs=[{"name": "a", "replicaz": 2}], foo=1)
    assert seen(undeclared(JOBSET, jobset)) == {".spec.foo", '.spec.replicatedJobs[name="a"].replicaz'}
