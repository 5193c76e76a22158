"""ServiceAccounts, roles and bindings as objects: defaults, validation, columns."""

from typing import Any

import pytest

from infra.local.cluster.objects import RESOURCES, ApiError
from infra.local.cluster.tables import table
from tests.local.cluster.world import World

GROUP = "rbac.authorization.k8s.io"
ROOT = f"/apis/{GROUP}/v1"
READ_PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
ANN = {"kind": "User", "name": "ann", "apiGroup": GROUP}
RELAY = {"kind": "ServiceAccount", "name": "relay", "namespace": "tools"}


def role(*rules: Any, name: str = "viewer") -> dict[str, Any]:
    return {"metadata": {"name": name}, "rules": list(rules)}


def binding(*subjects: Any, name: str = "viewers", kind: str = "ClusterRole", to: str = "viewer") -> dict[str, Any]:
    reference = {"apiGroup": GROUP, "kind": kind, "name": to}
    return {"metadata": {"name": name}, "roleRef": reference, "subjects": list(subjects)}


def refusal(plural: str, obj: dict[str, Any]) -> ApiError:
    with pytest.raises(ApiError) as refused:
        World().objects.create(plural, obj)
    assert refused.value.code == 422
    return refused.value


def test_a_role_may_have_colons_in_its_name() -> None:
    world = World()
    world.call("POST", f"{ROOT}/clusterroles", role(READ_PODS, name="system:pod:reader"))
    assert world.call("GET", f"{ROOT}/clusterroles/system:pod:reader")["rules"] == [READ_PODS]
    assert "may not contain '/'" in refusal("clusterroles", role(READ_PODS, name="a/b")).message


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        (READ_PODS | {"verbs": []}, "rules[0].verbs: Required value: verbs must contain at least one value"),
        (READ_PODS | {"apiGroups": []}, "rules[0].apiGroups: Required value: resource rules must supply at least one"),
        ({"verbs": ["get"], "apiGroups": [""]}, "rules[0].resources: Required value: resource rules must supply"),
        (READ_PODS | {"nonResourceURLs": ["/version"]}, "cannot apply to both regular resources and non-resource URLs"),
    ],
)
def test_a_rule_that_rules_nothing_is_refused(rule: dict[str, Any], why: str) -> None:
    assert why in refusal("clusterroles", role(rule)).message


def test_a_role_of_a_namespace_has_no_say_about_urls() -> None:
    rule = {"verbs": ["get"], "nonResourceURLs": ["/version"]}
    World().objects.create("clusterroles", role(rule))
    assert "namespaced rules cannot apply to non-resource URLs" in refusal("roles", role(rule)).message


@pytest.mark.parametrize(
    ("plural", "obj", "why"),
    [
        ("clusterrolebindings", binding(kind="Role"), 'roleRef.kind: Unsupported value: "Role": supported values'),
        ("rolebindings", binding(kind="User"), 'supported values: "ClusterRole", "Role"'),
        ("rolebindings", binding(to=""), "roleRef.name: Required value"),
        ("rolebindings", binding(ANN | {"apiGroup": "other"}), 'subjects[0].apiGroup: Unsupported value: "other"'),
        ("rolebindings", binding(ANN | {"kind": "Person"}), 'subjects[0].kind: Unsupported value: "Person"'),
        ("rolebindings", binding(RELAY | {"name": "A"}), 'subjects[0].name: Invalid value: "A"'),
        ("rolebindings", binding(ANN | {"name": ""}), "subjects[0].name: Required value"),
        ("clusterrolebindings", binding(RELAY | {"namespace": ""}), "subjects[0].namespace: Required value"),
    ],
)
def test_a_binding_that_binds_nothing_is_refused(plural: str, obj: dict[str, Any], why: str) -> None:
    assert why in refusal(plural, obj).message


def test_the_group_of_a_subject_is_filled_in() -> None:
    bare = {"kind": "Group", "name": "team"}
    made = World().objects.create("clusterrolebindings", binding(bare, RELAY))
    assert made["subjects"] == [bare | {"apiGroup": GROUP}, RELAY]


def test_a_binding_stays_with_its_role() -> None:
    world = World()
    made = world.objects.create("clusterrolebindings", binding(ANN))
    world.objects.update("clusterrolebindings", made | {"subjects": [RELAY]})
    with pytest.raises(ApiError, match="cannot change roleRef"):
        world.objects.update("clusterrolebindings", made | binding(ANN, to="other"))


@pytest.mark.parametrize(
    ("plural", "obj", "cells"),
    [
        ("serviceaccounts", {"metadata": {"name": "relay"}}, ["relay", "0", "0s"]),
        ("clusterroles", role(READ_PODS), ["viewer", "2026-01-01T00:00:00Z"]),
        ("roles", role(READ_PODS), ["viewer", "2026-01-01T00:00:00Z"]),
        (
            "clusterrolebindings",
            binding(ANN, RELAY),
            ["viewers", "ClusterRole/viewer", "0s", "ann", "", "tools/relay"],
        ),
        ("rolebindings", binding(kind="Role"), ["viewers", "Role/viewer", "0s", "", "", ""]),
    ],
)
def test_the_columns_are_kubectls(plural: str, obj: dict[str, Any], cells: list[str]) -> None:
    world = World()
    made = world.objects.create(plural, obj)
    shown = table(RESOURCES[plural], [made], world.now, "None")
    assert shown["rows"][0]["cells"] == cells
    assert len(shown["columnDefinitions"]) == len(cells)
