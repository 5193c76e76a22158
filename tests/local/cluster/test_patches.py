from typing import Any

import pytest

from infra.local.cluster.objects import ApiError
from infra.local.cluster.patches import json_patch, merge, strategic_merge


@pytest.mark.parametrize(
    ("target", "patch", "patched"),
    [
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": 1}, {"a": None}, {}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": None}}, {"a": {"c": 2}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": 1}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}),
    ],
)
def test_a_merge_patch_merges_objects_and_replaces_the_rest(target: Any, patch: Any, patched: Any) -> None:
    assert merge(target, patch) == patched


A, B = {"name": "a", "image": "x", "args": ["1"]}, {"name": "b"}


@pytest.mark.parametrize(
    ("target", "patch", "patched"),
    [
        (
            {"containers": [A, B]},
            {"containers": [{"name": "a", "image": "y"}]},
            {"containers": [A | {"image": "y"}, B]},
        ),
        ({"containers": [A]}, {"containers": [B]}, {"containers": [A, B]}),
        ({"containers": [A, B]}, {"containers": [{"name": "a", "$patch": "delete"}]}, {"containers": [B]}),
        ({"containers": [A]}, {"containers": [{"$patch": "replace"}, B]}, {"containers": [B]}),
        ({"containers": [A]}, {"containers": [{"name": "a", "args": ["2"]}]}, {"containers": [A | {"args": ["2"]}]}),
        ({"tolerations": [1]}, {"tolerations": [2]}, {"tolerations": [2]}),
        ({"taints": [{"key": "a"}]}, {"taints": [{"key": "b"}]}, {"taints": [{"key": "b"}]}),
        ({"finalizers": ["a"]}, {"finalizers": ["b", "a"]}, {"finalizers": ["a", "b"]}),
        ({"finalizers": ["a", "b"]}, {"$deleteFromPrimitiveList/finalizers": ["a"]}, {"finalizers": ["b"]}),
        (
            {"conditions": [{"type": "Ready", "status": "False"}, {"type": "Other"}]},
            {
                "$setElementOrder/conditions": [{"type": "Other"}, {"type": "Ready"}],
                "conditions": [{"type": "Ready", "status": "True"}],
            },
            {"conditions": [{"type": "Other"}, {"type": "Ready", "status": "True"}]},
        ),
        ({"a": {"b": 1, "c": 2}}, {"a": {"$retainKeys": ["c"], "c": 3}}, {"a": {"c": 3}}),
        ({"a": {"b": 1}}, {"a": {"$patch": "replace", "c": 3}}, {"a": {"c": 3}}),
        ({"a": {"b": 1}, "d": 1}, {"a": {"$patch": "delete"}}, {"d": 1}),
        ({"a": {"b": 1}}, {"a": None}, {}),
        (
            {"ports": [{"containerPort": 1, "name": "x"}]},
            {"ports": [{"containerPort": 1, "name": "y"}, {"containerPort": 2}]},
            {"ports": [{"containerPort": 1, "name": "y"}, {"containerPort": 2}]},
        ),
    ],
)
def test_a_strategic_merge_knows_the_lists_of_the_core_kinds(target: Any, patch: Any, patched: Any) -> None:
    assert strategic_merge(target, patch) == patched


def test_a_strategic_merge_without_the_key_is_refused() -> None:
    with pytest.raises(ApiError, match="does not contain declared merge key: name"):
        strategic_merge({"containers": []}, {"containers": [{"image": "x"}]})


def test_an_unknown_directive_is_refused() -> None:
    with pytest.raises(ApiError, match="unknown directive"):
        strategic_merge({}, {"$setElementOdrer/containers": []})


@pytest.mark.parametrize(
    ("operations", "patched"),
    [
        ([{"op": "add", "path": "/c", "value": 1}], {"a": {"b": [1, 2]}, "c": 1}),
        ([{"op": "add", "path": "/a/b/1", "value": 9}], {"a": {"b": [1, 9, 2]}}),
        ([{"op": "add", "path": "/a/b/-", "value": 9}], {"a": {"b": [1, 2, 9]}}),
        ([{"op": "replace", "path": "/a/b/0", "value": 9}], {"a": {"b": [9, 2]}}),
        ([{"op": "remove", "path": "/a/b/0"}], {"a": {"b": [2]}}),
        ([{"op": "move", "from": "/a/b", "path": "/x~1y"}], {"a": {}, "x/y": [1, 2]}),
        ([{"op": "copy", "from": "/a/b/0", "path": "/c"}], {"a": {"b": [1, 2]}, "c": 1}),
        ([{"op": "test", "path": "/a/b/0", "value": 1}], {"a": {"b": [1, 2]}}),
        ([{"op": "replace", "path": "", "value": {}}], {}),
    ],
)
def test_a_json_patch_does_what_it_says(operations: Any, patched: Any) -> None:
    assert json_patch({"a": {"b": [1, 2]}}, operations) == patched


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        ({"op": "remove", "path": "/none"}, 422),
        ({"op": "replace", "path": "/none", "value": 1}, 422),
        ({"op": "add", "path": "/a/b/7", "value": 1}, 422),
        ({"op": "add", "path": "/none/x", "value": 1}, 422),
        ({"op": "test", "path": "/a/b/0", "value": 2}, 422),
        ({"op": "twist", "path": "/a"}, 400),
    ],
)
def test_a_json_patch_that_does_not_fit_is_refused(operation: Any, code: int) -> None:
    with pytest.raises(ApiError) as refused:
        json_patch({"a": {"b": [1, 2]}}, [operation])
    assert refused.value.code == code
