from typing import Any

import pytest

from infra.local.cluster.objects import RESOURCES, ApiError
from infra.local.cluster.schema import decode
from tests.local.cluster.world import jobset, node, pod


def changed(obj: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Return the object with a value set at a path of keys and indexes."""
    *way, last = path.split(".")
    here: Any = obj
    for step in way:
        here = here[int(step)] if isinstance(here, list) else here.setdefault(step, {})
    here[last] = value
    return obj


@pytest.mark.parametrize(
    ("plural", "obj", "path", "shown"),
    [
        ("jobsets", jobset(), "spec.foo", "spec.foo"),
        ("jobsets", jobset(), "spec.replicatedJobs.0.replicaz", "spec.replicatedJobs[0].replicaz"),
        (
            "jobsets",
            jobset(),
            "spec.replicatedJobs.0.template.spec.template.spec.nodeselector",
            "spec.replicatedJobs[0].template.spec.template.spec.nodeselector",
        ),
        ("pods", pod(), "spec.containers.0.imagge", "spec.containers[0].imagge"),
        ("pods", pod(), "metadata.lables", "metadata.lables"),
        ("nodes", node(), "status.capacities", "status.capacities"),
    ],
)
def test_an_unknown_field_is_named_and_dropped(plural: str, obj: Any, path: str, shown: str) -> None:
    decoded = decode(RESOURCES[plural], changed(obj, path, "x"))
    assert decoded.unknown == [shown]
    assert decode(RESOURCES[plural], decoded.object).unknown == []


def test_labels_may_have_any_key() -> None:
    assert decode(RESOURCES["pods"], pod(labels={"any.thing/at-all": "x"})).unknown == []


def test_every_field_of_a_shape_is_known_by_its_name_in_json() -> None:
    probe = {"exec": {"command": ["true"]}, "httpGet": {"port": "http"}}
    decoded = decode(RESOURCES["pods"], changed(pod(), "spec.containers.0.livenessProbe", probe))
    assert (decoded.unknown, decoded.problems) == ([], [])
    assert decoded.object["spec"]["containers"][0]["livenessProbe"] == probe


def test_the_webhook_names_a_rule_before_the_schema_misses_it() -> None:
    policy = {"maxRestarts": 1, "rules": [{"action": "FailJobSet"}]}
    assert decode(RESOURCES["jobsets"], changed(jobset(), "spec.failurePolicy", policy)).problems == []


def test_null_is_as_good_as_absent() -> None:
    decoded = decode(RESOURCES["pods"], changed(pod(), "metadata.creationTimestamp", None))
    assert "creationTimestamp" not in decoded.object["metadata"]


def test_quantities_become_text() -> None:
    decoded = decode(RESOURCES["nodes"], changed(node(), "status.allocatable", {"google.com/tpu": 4}))
    assert decoded.object["status"]["allocatable"] == {"google.com/tpu": "4"}


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("spec.replicatedJobs.0.replicas", "two", "must be of type integer"),
        ("spec.replicatedJobs.0.replicas", True, "must be of type integer"),
        ("spec.suspend", "yes", "must be of type boolean"),
        ("spec.replicatedJobs", {}, "must be of type array"),
        ("spec.network", [], "must be of type object"),
        ("spec.replicatedJobs.0.replicas", -1, "should be greater than or equal to 0"),
        ("spec.successPolicy", {"operator": "Most"}, 'Unsupported value: "Most"'),
        ("spec.coordinator", {"jobIndex": 1}, "spec.coordinator.replicatedJob: Required value"),
        (
            "spec.replicatedJobs.0.dependsOn",
            [{"name": f"job-{index}", "status": "Ready"} for index in range(6)],
            "Too many: 6: must have at most 5 items",
        ),
    ],
)
def test_a_jobset_of_another_shape_is_a_problem_with_a_path(path: str, value: Any, message: str) -> None:
    problems = decode(RESOURCES["jobsets"], changed(jobset(), path, value)).problems
    assert len(problems) == 1
    assert message in str(problems[0])
    assert problems[0].path.startswith(path.replace(".0", "[0]"))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("spec.priority", "high", "cannot unmarshal string into Go struct field PodSpec.spec.priority of type int32"),
        ("spec.containers.0.image", [1], "cannot unmarshal array into Go struct field Container.spec.containers.image"),
        ("spec.containers", {}, r"Go struct field PodSpec.spec.containers of type \[\]v1.Container"),
        ("spec.containers.0.resources", {"limits": {"cpu": "lots"}}, "quantities must match"),
    ],
)
def test_a_core_object_of_another_shape_cannot_be_decoded(path: str, value: Any, message: str) -> None:
    with pytest.raises(ApiError, match=message) as refused:
        decode(RESOURCES["pods"], changed(pod(), path, value))
    assert refused.value.code == 400


def test_another_kind_is_refused() -> None:
    with pytest.raises(ApiError, match=r"the API version in the data \(v1\) does not match"):
        decode(RESOURCES["jobsets"], jobset() | {"apiVersion": "v1"})
    with pytest.raises(ApiError, match=r"the kind in the data \(Pod\) does not match"):
        decode(RESOURCES["jobsets"], jobset() | {"kind": "Pod"})
