"""Objects that change: by whom they may be changed, how, and what counts as a change."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.asking import APPLY, JSON_PATCH, LIVE, STRATEGIC, Json, done, path
from tests.cluster.builders import CONTAINER, job, jobset, meta, node, pod
from tests.cluster.servers import Cluster, unique

pytestmark = LIVE


def labelled(obj: Json, **labels: str) -> Json:
    return obj | {"metadata": obj["metadata"] | {"labels": labels}}


class TestReplacing:
    def test_an_older_version_is_a_conflict(self, cluster: Cluster, namespace: str) -> None:
        one = path("pods", namespace, "one")
        old = cluster.api.create(path("pods", namespace), pod())
        done(cluster.api.put(one, labelled(old, a="b")))
        assert cluster.api.put(one, labelled(old, a="c")).refusal == (409, "Conflict")

    def test_without_a_version_it_is_unconditional(self, cluster: Cluster, namespace: str) -> None:
        made = cluster.api.create(path("pods", namespace), pod())
        del made["metadata"]["resourceVersion"]
        changed = done(cluster.api.put(path("pods", namespace, "one"), labelled(made, a="b")))
        assert changed["metadata"]["labels"] == {"a": "b"}

    def test_a_custom_object_is_replaced_with_its_version_only(self, cluster: Cluster, namespace: str) -> None:
        made = cluster.api.create(path("jobsets", namespace), jobset())
        del made["metadata"]["resourceVersion"]
        refused = cluster.api.put(path("jobsets", namespace, "train"), made)
        assert (refused.refusal, refused.fields) == ((422, "Invalid"), {"metadata.resourceVersion"})

    def test_another_object_of_that_name_is_a_conflict(self, cluster: Cluster, namespace: str) -> None:
        made = cluster.api.create(path("pods", namespace), pod())
        made["metadata"] |= {"uid": "another"}
        assert cluster.api.put(path("pods", namespace, "one"), made).refusal == (409, "Conflict")

    @pytest.mark.parametrize("wrong", [{"name": "other"}, {"namespace": "default"}])
    def test_body_and_path_agree(self, cluster: Cluster, namespace: str, wrong: Json) -> None:
        made = cluster.api.create(path("pods", namespace), pod())
        made["metadata"] |= wrong
        assert cluster.api.put(path("pods", namespace, "one"), made).refusal == (400, "BadRequest")

    def test_what_is_not_there_is_not_replaced(self, cluster: Cluster, namespace: str) -> None:
        assert cluster.api.put(path("jobs", namespace, "work"), job()).refusal == (404, "NotFound")

    def test_a_lease_that_is_not_there_is_created(self, cluster: Cluster) -> None:
        name = unique("host")
        lease = meta(name, namespace="kube-node-lease") | {"spec": {"holderIdentity": name}}
        assert cluster.api.put(path("leases", "kube-node-lease", name), lease).code == 201
        assert cluster.api.read(path("leases", "kube-node-lease", name))["spec"]["holderIdentity"] == name

    def test_what_changes_nothing_is_no_change(self, cluster: Cluster, namespace: str) -> None:
        made = cluster.api.create(path("jobsets", namespace), jobset())
        again = done(cluster.api.put(path("jobsets", namespace, "train"), made))
        assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


class TestGenerations:
    @pytest.mark.parametrize(("plural", "obj"), [("jobs", job()), ("jobsets", jobset("work"))])
    def test_changes_of_the_spec_alone_are_counted(
        self, cluster: Cluster, namespace: str, plural: str, obj: Json
    ) -> None:
        one = path(plural, namespace, "work")
        made = cluster.api.create(path(plural, namespace), obj)
        labels = done(cluster.api.patch(one, {"metadata": {"labels": {"a": "b"}}}))
        status = done(cluster.api.patch(f"{one}/status", {"status": {"active": 0, "restarts": 1}}))
        template = {"spec": {"ttlSecondsAfterFinished": 7}}
        spec = done(cluster.api.patch(one, template))
        assert [obj["metadata"]["generation"] for obj in (made, labels, status, spec)] == [1, 1, 1, 2]

    def test_status_is_written_by_its_own_path_only(self, cluster: Cluster, namespace: str) -> None:
        one = path("jobsets", namespace, "train")
        cluster.api.create(path("jobsets", namespace), jobset())
        both = {"spec": {"suspend": False}, "status": {"restarts": 2}}
        plain = done(cluster.api.patch(one, {"status": {"restarts": 1}}))
        status = done(cluster.api.patch(f"{one}/status", both))
        assert plain.get("status", {}) == {}
        assert (status["status"], status["spec"]["suspend"]) == ({"restarts": 2}, True)

    def test_a_status_is_replaced_with_its_version(self, cluster: Cluster, namespace: str) -> None:
        made = cluster.api.create(path("jobsets", namespace), jobset())
        one = path("jobsets", namespace, "train", "status")
        written = done(cluster.api.put(one, made | {"status": {"restarts": 1}}))
        assert written["status"] == {"restarts": 1}
        assert cluster.api.put(one, made | {"status": {"restarts": 2}}).refusal == (409, "Conflict")
        assert cluster.api.read(one)["status"] == {"restarts": 1}


class TestPatches:
    def test_a_merge_patch_merges_objects_and_replaces_the_rest(self, cluster: Cluster, namespace: str) -> None:
        one = path("jobsets", namespace, "train")
        cluster.api.create(path("jobsets", namespace), jobset(labels={"a": "1", "b": "1"}, finalizers=["x.io/a"]))
        patch = {"metadata": {"labels": {"a": None, "b": "2", "c": "3"}, "finalizers": ["x.io/b"]}}
        metadata = done(cluster.api.patch(one, patch))["metadata"]
        assert (metadata["labels"], metadata["finalizers"]) == ({"b": "2", "c": "3"}, ["x.io/b"])

    def test_a_patch_with_an_old_version_is_a_conflict(self, cluster: Cluster, namespace: str) -> None:
        one = path("jobsets", namespace, "train")
        old = cluster.api.create(path("jobsets", namespace), jobset())["metadata"]["resourceVersion"]
        done(cluster.api.patch(one, {"metadata": {"labels": {"a": "1"}}}))
        patch = {"metadata": {"labels": {"a": "2"}, "resourceVersion": old}}
        assert cluster.api.patch(one, patch).refusal == (409, "Conflict")

    def test_a_strategic_patch_merges_lists_by_their_keys(self, cluster: Cluster) -> None:
        name = unique("host")
        conditions = [{"type": "Ready", "status": "False"}, {"type": "DiskPressure", "status": "False"}]
        cluster.api.create(path("nodes"), node(name, status={"conditions": conditions}))
        patch = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        patched = done(cluster.api.patch(path("nodes", name=name, subresource="status"), patch, STRATEGIC))
        shown = {each["type"]: each["status"] for each in patched["status"]["conditions"]}
        assert shown == {"Ready": "True", "DiskPressure": "False"}

    def test_a_strategic_patch_replaces_taints(self, cluster: Cluster) -> None:
        name = unique("host")
        cluster.api.create(path("nodes"), node(name, spec={"taints": [{"key": "a", "effect": "NoSchedule"}]}))
        taints = [{"key": "b", "effect": "NoSchedule"}]
        patched = done(cluster.api.patch(path("nodes", name=name), {"spec": {"taints": taints}}, STRATEGIC))
        assert patched["spec"]["taints"] == taints

    def test_a_strategic_patch_changes_a_container_by_its_name(self, cluster: Cluster, namespace: str) -> None:
        two = {"containers": [CONTAINER, CONTAINER | {"name": "side"}]}
        cluster.api.create(path("pods", namespace), pod(spec=two))
        patch = {"spec": {"containers": [{"name": "side", "image": "python:3.13"}]}}
        patched = done(cluster.api.patch(path("pods", namespace, "one"), patch, STRATEGIC))
        images = {each["name"]: each["image"] for each in patched["spec"]["containers"]}
        assert images == {"main": "python:3.12", "side": "python:3.13"}

    def test_a_strategic_patch_adds_and_removes_finalizers(self, cluster: Cluster, namespace: str) -> None:
        cluster.api.create(path("pods", namespace), pod(finalizers=["x.io/a"]))
        one = path("pods", namespace, "one")
        more = done(cluster.api.patch(one, {"metadata": {"finalizers": ["x.io/b"]}}, STRATEGIC))
        assert set(more["metadata"]["finalizers"]) == {"x.io/a", "x.io/b"}
        less = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x.io/a"]}}
        assert done(cluster.api.patch(one, less, STRATEGIC))["metadata"]["finalizers"] == ["x.io/b"]

    def test_a_custom_object_takes_no_strategic_patch(self, cluster: Cluster, namespace: str) -> None:
        cluster.api.create(path("jobsets", namespace), jobset())
        refused = cluster.api.patch(path("jobsets", namespace, "train"), {}, STRATEGIC)
        assert refused.refusal == (415, "UnsupportedMediaType")

    def test_a_json_patch_does_its_operations_in_order(self, cluster: Cluster, namespace: str) -> None:
        one = path("jobsets", namespace, "train")
        cluster.api.create(path("jobsets", namespace), jobset(labels={"a": "1"}))
        patch = [
            {"op": "test", "path": "/metadata/labels/a", "value": "1"},
            {"op": "replace", "path": "/metadata/labels/a", "value": "2"},
            {"op": "add", "path": "/metadata/labels/x.io~1b", "value": "3"},
            {"op": "remove", "path": "/spec/suspend"},
        ]
        patched = done(cluster.api.patch(one, patch, JSON_PATCH))
        assert (patched["metadata"]["labels"], "suspend" in patched["spec"]) == ({"a": "2", "x.io/b": "3"}, False)

    @pytest.mark.parametrize(
        ("operation", "code"),
        [
            ({"op": "test", "path": "/metadata/name", "value": "other"}, 422),
            ({"op": "remove", "path": "/metadata/none"}, 422),
            ({"op": "replace", "path": "/spec/none/x", "value": 1}, 422),
        ],
    )
    def test_a_json_patch_that_does_not_fit_is_refused(
        self, cluster: Cluster, namespace: str, operation: Json, code: int
    ) -> None:
        cluster.api.create(path("jobsets", namespace), jobset())
        assert cluster.api.patch(path("jobsets", namespace, "train"), [operation], JSON_PATCH).code == code

    def test_a_dry_run_of_a_patch_changes_nothing(self, cluster: Cluster, namespace: str) -> None:
        one = path("jobsets", namespace, "train")
        made = cluster.api.create(path("jobsets", namespace), jobset())
        assert not done(cluster.api.patch(one, {"spec": {"suspend": False}}, dryRun="All"))["spec"]["suspend"]
        assert cluster.api.read(one)["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]

    def test_what_is_not_there_is_not_patched(self, cluster: Cluster, namespace: str) -> None:
        assert cluster.api.patch(path("jobsets", namespace, "none"), {}).refusal == (404, "NotFound")

    @pytest.mark.parametrize(("kind", "body"), [("text/plain", {}), ("application/json", {})])
    def test_a_patch_says_of_what_kind_it_is(self, cluster: Cluster, namespace: str, kind: str, body: Any) -> None:
        cluster.api.create(path("pods", namespace), pod())
        refused = cluster.api.patch(path("pods", namespace, "one"), body, kind)
        assert refused.refusal == (415, "UnsupportedMediaType")


class TestApplying:
    """Server-side, as far as a forced merge is the same: by one manager, of what it alone has."""

    def test_what_is_not_there_is_created_and_then_changed(self, cluster: Cluster, namespace: str) -> None:
        one = path("pods", namespace, "one")
        for value, code in (("1", 201), ("2", 200)):
            body = {"apiVersion": "v1", "kind": "Pod"} | pod(labels={"a": value})
            applied = cluster.api.patch(one, body, APPLY, fieldManager="me", force="true")
            assert (applied.code, applied.body["metadata"]["labels"]) == (code, {"a": value})

    def test_a_custom_object_is_applied(self, cluster: Cluster, namespace: str) -> None:
        one = path("jobsets", namespace, "train")
        for suspended in (True, False):
            body = jobset(spec={"suspend": suspended})
            applied = done(cluster.api.patch(one, body, APPLY, fieldManager="me", force="true"))
            assert applied["spec"]["suspend"] is suspended

    def test_what_others_wrote_stays(self, cluster: Cluster, namespace: str) -> None:
        one = path("configmaps", namespace, "settings")
        body = {"apiVersion": "v1", "kind": "ConfigMap"} | meta("settings") | {"data": {"a": "1"}}
        done(cluster.api.patch(one, body, APPLY, fieldManager="me", force="true"))
        done(cluster.api.patch(one, {"data": {"b": "1"}}))
        again = done(cluster.api.patch(one, body | {"data": {"a": "2"}}, APPLY, fieldManager="me", force="true"))
        assert again["data"] == {"a": "2", "b": "1"}

    def test_the_same_again_is_no_change(self, cluster: Cluster, namespace: str) -> None:
        one = path("configmaps", namespace, "settings")
        body = {"apiVersion": "v1", "kind": "ConfigMap"} | meta("settings") | {"data": {"a": "1"}}
        versions = {
            done(cluster.api.patch(one, body, APPLY, fieldManager="me", force="true"))["metadata"]["resourceVersion"]
            for _ in range(2)
        }
        assert len(versions) == 1

    def test_a_manager_has_a_name(self, cluster: Cluster, namespace: str) -> None:
        body = {"apiVersion": "v1", "kind": "Pod"} | pod()
        assert cluster.api.patch(path("pods", namespace, "one"), body, APPLY).refusal == (422, "Invalid")


IMMUTABLE: dict[str, tuple[str, Json, Json]] = {
    "a pod's node selector": ("pods", pod(), {"spec": {"nodeSelector": {"a": "b"}}}),
    "a pod's node, but by a binding": ("pods", pod(), {"spec": {"nodeName": "host"}}),
    "a Job's template": (
        "jobs",
        job("one", spec={"suspend": False}),
        {"spec": {"template": {"spec": {"priority": 7}}}},
    ),
    "a Job's selector": ("jobs", job("one"), {"spec": {"selector": {"matchLabels": {"a": "b"}}}}),
    "how often a Job is completed": ("jobs", job("one"), {"spec": {"completions": 7}}),
    "any object's name": ("pods", pod(), {"metadata": {"name": "other"}}),
}


@pytest.mark.parametrize("case", IMMUTABLE)
def test_what_may_not_change_does_not(cluster: Cluster, namespace: str, case: str) -> None:
    plural, obj, patch = IMMUTABLE[case]
    cluster.api.create(path(plural, namespace), obj)
    assert cluster.api.patch(path(plural, namespace, "one"), patch).code in {400, 422}


def test_a_provider_s_id_of_a_node_is_said_once(cluster: Cluster) -> None:
    name = unique("host")
    cluster.api.create(path("nodes"), node(name))
    for number, code in ((1, 200), (2, 422)):
        assert cluster.api.patch(path("nodes", name=name), {"spec": {"providerID": f"gce://{number}"}}).code == code


def test_a_suspended_job_may_be_placed_anew(cluster: Cluster, namespace: str) -> None:
    cluster.api.create(path("jobs", namespace), job())
    patch = {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}}
    patched = done(cluster.api.patch(path("jobs", namespace, "work"), patch))
    assert patched["spec"]["template"]["spec"]["nodeSelector"] == {"a": "b"}


@pytest.mark.parametrize(
    "status", [{"conditions": [{"type": "Complete", "status": "True"}]}, {"ready": 2, "active": 1}]
)
def test_a_status_of_a_job_that_cannot_be_is_refused(cluster: Cluster, namespace: str, status: Json) -> None:
    cluster.api.create(path("jobs", namespace), job())
    refused = cluster.api.patch(path("jobs", namespace, "work", "status"), {"status": status})
    assert refused.refusal == (422, "Invalid")


class TestBinding:
    @staticmethod
    def to(host: str) -> Json:
        return meta("one") | {"target": {"kind": "Node", "name": host}}

    def test_a_pod_is_bound_once(self, cluster: Cluster, namespace: str) -> None:
        host = unique("host")  # a pod on a node that is not there is collected
        cluster.api.create(path("nodes"), node(host))
        cluster.api.create(path("pods", namespace), pod())
        binding = path("pods", namespace, "one", "binding")
        assert cluster.api.post(binding, self.to(host)).code == 201
        bound = cluster.api.read(path("pods", namespace, "one"))
        scheduled = {each["type"]: each["status"] for each in bound["status"]["conditions"]}
        assert (bound["spec"]["nodeName"], scheduled["PodScheduled"]) == (host, "True")
        assert cluster.api.post(binding, self.to("other")).refusal == (409, "Conflict")

    def test_a_gated_pod_is_not_bound(self, cluster: Cluster, namespace: str) -> None:
        cluster.api.create(path("pods", namespace), pod(spec={"schedulingGates": [{"name": "example.com/wait"}]}))
        refused = cluster.api.post(path("pods", namespace, "one", "binding"), self.to("host"))
        assert refused.code == 409
