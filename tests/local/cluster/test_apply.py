"""Server-side apply and field ownership: by requests, and by kubectl."""

from datetime import timedelta
from typing import Any

import pytest

from infra.local.cluster.errors import ApiError
from tests.local.cluster.served import Served
from tests.local.cluster.world import JOBSETS, PODS, World, jobset, pod

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
ONE = f"{PODS}/one"
TRAIN = f"{JOBSETS}/train"


def configured(*, image: str = "python:3.12", **meta: Any) -> dict[str, Any]:
    """Return a pod as users apply it."""
    container = {"name": "main", "image": image}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"} | meta, "spec": {"containers": [container]}}


def annotated(name: str, **annotations: str) -> dict[str, Any]:
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name, "annotations": annotations},
    }


def applied(world: World, path: str, config: Any, manager: str = "alice", **more: str) -> dict[str, Any]:
    return world.call("PATCH", path, config, kind=APPLY, fieldManager=manager, **more)


def refused(world: World, path: str, config: Any, **more: str) -> ApiError:
    params = {"kind": APPLY, "fieldManager": "alice"} | more
    with pytest.raises(ApiError) as error:
        world.call("PATCH", path, config, **params)
    return error.value


def managers(obj: dict[str, Any]) -> dict[tuple[str, str], Any]:
    entries = obj["metadata"].get("managedFields", [])
    return {(entry["manager"], entry["operation"]): entry["fieldsV1"] for entry in entries}


def test_an_object_that_is_not_there_is_created() -> None:
    world = World()
    answer = world.answer("PATCH", ONE, configured(), kind=APPLY, fieldManager="alice")
    assert answer.code == 201
    made = world.call("GET", ONE)
    assert made["spec"]["restartPolicy"] == "Always"
    assert managers(made) == {
        ("alice", "Apply"): {
            "f:spec": {"f:containers": {'k:{"name":"main"}': {".": {}, "f:image": {}, "f:name": {}}}},
        }
    }


def test_the_same_again_changes_nothing() -> None:
    world = World()
    applied(world, ONE, configured())
    version = world.objects.version
    world.now += timedelta(minutes=1)
    applied(world, ONE, configured())
    assert world.objects.version == version


def test_a_field_of_another_is_a_conflict_in_the_words_of_the_original() -> None:
    world = World()
    world.call("POST", PODS, configured(), fieldManager="kubectl-client-side-apply")
    error = refused(world, ONE, configured(image="python:3.13"))
    path = '.spec.containers[name="main"].image'
    said = f'conflict with "kubectl-client-side-apply" using v1: {path}'
    assert (error.code, error.reason, error.message) == (409, "Conflict", f"Apply failed with 1 conflict: {said}")
    cause = {"reason": "FieldManagerConflict", "message": said.rpartition(": ")[0], "field": path}
    assert error.details["causes"] == [cause]


def test_several_conflicts_are_listed_by_manager() -> None:
    world = World()
    applied(world, TRAIN, annotated("train", a="1") | {"spec": jobset()["spec"]}, "bob")
    applied(world, TRAIN, annotated("train", b="1"), "carol")
    error = refused(world, TRAIN, annotated("train", a="2", b="2"))
    assert error.message == (
        'Apply failed with 2 conflicts: conflicts with "bob":\n- .metadata.annotations.a\n'
        'conflicts with "carol":\n- .metadata.annotations.b'
    )


def test_a_forced_apply_takes_the_field() -> None:
    world = World()
    world.call("POST", PODS, configured(), fieldManager="bob")
    taken = applied(world, ONE, configured(image="python:3.13"), force="true")
    assert taken["spec"]["containers"][0]["image"] == "python:3.13"
    bobs = managers(taken)["bob", "Update"]["f:spec"]["f:containers"]['k:{"name":"main"}']
    assert "f:image" not in bobs
    assert "f:name" in bobs


def test_two_who_apply_the_same_value_share_the_field() -> None:
    world = World()
    applied(world, ONE, configured(), "bob")
    shared = applied(world, ONE, configured(), "alice")
    assert {name for name, _ in managers(shared)} == {"alice", "bob"}
    kept = applied(world, ONE, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}}, "bob")
    assert kept["spec"]["containers"][0]["image"] == "python:3.12"
    assert {name for name, _ in managers(kept)} == {"alice"}


def test_what_is_not_applied_any_more_goes_and_what_others_wrote_stays() -> None:
    world = World()
    applied(world, ONE, configured(labels={"a": "1", "b": "1"}))
    world.call("PATCH", ONE, {"metadata": {"labels": {"c": "1"}}}, kind=MERGE, fieldManager="bob")
    left = applied(world, ONE, configured(labels={"a": "1"}))
    assert left["metadata"]["labels"] == {"a": "1", "c": "1"}
    none = applied(world, ONE, configured())
    assert none["metadata"]["labels"] == {"c": "1"}


def test_a_job_of_a_jobset_is_left_out_by_its_name() -> None:
    world = World()
    config = jobset() | {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet"}
    config["spec"]["suspend"] = True
    made = applied(world, TRAIN, config)
    assert made["spec"]["replicatedJobs"][0]["replicas"] == 2
    del config["spec"]["suspend"]
    assert "suspend" not in applied(world, TRAIN, config)["spec"]


def test_other_writes_are_recorded_under_the_program_s_name() -> None:
    world = World()
    made = world.call("POST", PODS, pod(labels={"a": "1"}), agent="curl/8.1")
    assert managers(made)["curl", "Update"]["f:metadata"] == {"f:labels": {".": {}, "f:a": {}}}
    patched = world.call("PATCH", ONE, {"metadata": {"labels": {"a": "2"}}}, kind=MERGE, fieldManager="bob")
    assert managers(patched)["bob", "Update"] == {"f:metadata": {"f:labels": {"f:a": {}}}}
    assert "f:a" not in managers(patched)["curl", "Update"].get("f:metadata", {}).get("f:labels", {})


def test_the_status_is_owned_apart() -> None:
    world = World()
    world.call("POST", PODS, pod(), fieldManager="alice")
    patched = world.call("PATCH", f"{ONE}/status", {"status": {"phase": "Running"}}, kind=MERGE, fieldManager="alice")
    entries = patched["metadata"]["managedFields"]
    assert [entry.get("subresource") for entry in entries] == [None, "status"]
    assert entries[1]["fieldsV1"] == {"f:status": {"f:phase": {}}}
    config = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, "status": {"phase": "Failed"}}
    error = refused(world, f"{ONE}/status", config, fieldManager="bob")
    assert error.message.endswith('conflict with "alice" with subresource "status" using v1: .status.phase')
    assert applied(world, f"{ONE}/status", config, "bob", force="true")["status"]["phase"] == "Failed"


def test_what_nobody_was_seen_to_write_was_there_before_the_first_apply() -> None:
    world = World()
    world.objects.create("pods", pod())
    assert "managedFields" not in world.call("GET", ONE)["metadata"]
    error = refused(world, ONE, configured(image="python:3.13"))
    assert 'conflict with "before-first-apply" using v1' in error.message


def test_what_a_controller_changed_is_a_conflict() -> None:
    world = World()
    config = jobset() | {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet"}
    config["spec"]["suspend"] = True
    applied(world, TRAIN, config)
    changed = world.objects.get("jobsets", "default", "train")
    changed["spec"]["suspend"] = False
    world.objects.update("jobsets", changed)
    error = refused(world, TRAIN, config)
    assert error.message.endswith('conflict with "local-controllers" using jobset.x-k8s.io/v1alpha2: .spec.suspend')


def test_the_status_in_what_is_applied_to_the_whole_counts_for_nothing() -> None:
    world = World()
    world.call("POST", PODS, pod(), fieldManager="alice")
    world.call("PATCH", f"{ONE}/status", {"status": {"phase": "Running"}}, kind=MERGE, fieldManager="kubelet")
    left = applied(world, ONE, configured() | {"status": {"phase": "Failed"}}, "bob")
    assert left["status"]["phase"] == "Running"
    assert "f:status" not in managers(left)["bob", "Apply"]


def test_ten_who_update_are_remembered_by_name() -> None:
    world = World()
    world.call("POST", PODS, pod(), fieldManager="m0")
    for index in range(1, 12):
        world.now += timedelta(minutes=1)
        patch = {"metadata": {"labels": {f"l{index}": "x"}}}
        patched = world.call("PATCH", ONE, patch, kind=MERGE, fieldManager=f"m{index}")
    names = [entry["manager"] for entry in patched["metadata"]["managedFields"]]
    assert names == ["ancient-changes", *(f"m{index}" for index in range(3, 12))]


def test_a_rehearsal_stores_nothing() -> None:
    world = World()
    assert applied(world, ONE, configured(), dryRun="All")["spec"]["containers"][0]["image"] == "python:3.12"
    assert world.call("GET", PODS)["items"] == []


@pytest.mark.parametrize(
    ("config", "params", "code", "message"),
    [
        (configured(), {"fieldManager": ""}, 422, "fieldManager: Required value: is required for apply patch"),
        (configured(), {"kind": MERGE, "force": "true"}, 422, "force: Forbidden: may not be specified for non-apply"),
        (configured(), {"fieldManager": "x" * 129}, 422, "fieldManager: Too long: may not be more than 128 bytes"),
        (configured(managedFields=[{}]), {}, 400, "metadata.managedFields must be nil"),
        (configured() | {"apiVersion": "v2"}, {}, 400, "Specified patch version: v2, expected: v1"),
        ([1], {}, 400, "error decoding YAML"),
        (
            configured() | {"spec": {"foo": 1}},
            {},
            500,
            "failed to create typed patch object (one; v1, Kind=Pod): .spec.foo: field not declared in schema",
        ),
    ],
)
def test_what_cannot_be_applied_is_refused(config: Any, params: dict[str, str], code: int, message: str) -> None:
    error = refused(World(), ONE, config, **params)
    assert error.code == code
    assert message in error.message


def test_a_part_of_what_is_not_there_cannot_be_applied() -> None:
    assert refused(World(), f"{ONE}/status", configured()).code == 404


@pytest.mark.emulators
@pytest.mark.enable_socket
@pytest.mark.timeout(60)
class TestWithKubectl:
    def manifest(self, namespace: str, **labels: str) -> dict[str, Any]:
        return configured(namespace=namespace, labels=labels)

    def test_an_object_is_applied_and_applied_again(self, client: Served) -> None:
        namespace = client.namespace()
        for _ in range(2):
            said = client.kubectl("apply", "--server-side", "-f-", stdin=self.manifest(namespace, a="1"))
            assert said.out == "pod/one serverside-applied\n"
        shown = client.kubectl("get", "pod", "one", "-n", namespace, "-o", "yaml").out
        assert "managedFields" not in shown
        shown = client.kubectl("get", "pod", "one", "-n", namespace, "-o", "yaml", "--show-managed-fields").out
        assert "operation: Apply" in shown

    def test_a_conflict_is_told_and_can_be_forced(self, client: Served) -> None:
        namespace = client.namespace()
        client.kubectl("apply", "--server-side", "-f-", stdin=self.manifest(namespace, a="1"))
        other = ("apply", "--server-side", "--field-manager=other", "-f-")
        said = client.kubectl(*other, stdin=self.manifest(namespace, a="2"))
        assert said.code == 1
        assert 'Apply failed with 1 conflict: conflict with "kubectl": .metadata.labels.a' in said.error
        forced = client.kubectl(*other, "--force-conflicts", stdin=self.manifest(namespace, a="2"))
        assert forced.out == "pod/one serverside-applied\n"

    def test_an_object_moves_from_client_side_to_server_side_apply(self, client: Served) -> None:
        namespace = client.namespace()
        client.kubectl("apply", "-f-", stdin=self.manifest(namespace, a="1", b="1"))
        said = client.kubectl("apply", "--server-side", "-f-", stdin=self.manifest(namespace, a="2"))
        assert (said.out, said.error) == ("pod/one serverside-applied\n", "")
        shown = client.kubectl("get", "pod", "one", "-n", namespace, "-o", "jsonpath={.metadata.labels}").out
        assert shown == '{"a":"2"}'
        managers = client.kubectl(
            "get", "pod", "one", "-n", namespace, "-o", "jsonpath={.metadata.managedFields[*].manager}"
        ).out
        assert "kubectl-client-side-apply" not in managers.split()

    def test_a_jobset_is_rehearsed(self, client: Served) -> None:
        namespace = client.namespace()
        config = jobset() | {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet"}
        config["metadata"]["namespace"] = namespace
        said = client.kubectl("apply", "--server-side", "--dry-run=server", "-f-", stdin=config)
        assert said.out == "jobset.jobset.x-k8s.io/train serverside-applied (server dry run)\n"
        assert client.kubectl("get", "jobsets", "-n", namespace, "-o", "name").out == ""
