"""Objects that go: at once, after a grace period, behind their finalizers, owners or dependents, with a namespace."""

from __future__ import annotations

import pytest

from tests.cluster.asking import LIVE, Api, Json, done, path
from tests.cluster.builders import bound, job, jobset, meta, node, owned_by, pod
from tests.cluster.servers import Cluster, unique
from tpu_standins.testing.waiting import until

pytestmark = LIVE

FREED = {"metadata": {"finalizers": None}}


def gone(api: Api, where: str) -> None:
    until(lambda: api.get(where).code == 404, f"the end of {where}")


def going(api: Api, where: str) -> Json:
    """Wait until an object is being deleted; return its metadata."""
    until(lambda: "deletionTimestamp" in api.read(where)["metadata"], f"{where} to be deleted")
    metadata: Json = api.read(where)["metadata"]
    return metadata


def collector_has_caught_up(api: Api, namespace: str) -> None:
    """Wait until the garbage collector knows the Jobs and ConfigMaps that there are: it takes others, made after them.

    It leaves a dependent to its end, not to the orphans, if it has not seen it when the owner goes.
    """
    owner = api.create(path("configmaps", namespace), meta("probe"))
    api.create(path("jobs", namespace), job("probe", **owned_by(owner)))
    api.create(path("configmaps", namespace), meta("probed", **owned_by(owner)))
    done(api.delete(path("configmaps", namespace, "probe"), {"propagationPolicy": "Background"}))
    for where in (path("jobs", namespace, "probe"), path("configmaps", namespace, "probed")):
        gone(api, where)


class TestPods:
    def test_one_without_a_node_goes_at_once(self, cluster: Cluster, namespace: str) -> None:
        made = cluster.api.create(path("pods", namespace), pod())
        answer = done(cluster.api.delete(path("pods", namespace, "one")))
        assert (answer["kind"], answer["metadata"]["uid"]) == ("Pod", made["metadata"]["uid"])
        gone(cluster.api, path("pods", namespace, "one"))

    def test_one_on_a_node_stays_for_its_grace_period_until_the_node_lets_go(
        self, cluster: Cluster, namespace: str
    ) -> None:
        host = unique("host")
        cluster.api.create(path("nodes"), node(host))
        cluster.api.create(path("pods", namespace), bound("one", host))
        one = path("pods", namespace, "one")
        metadata = done(cluster.api.delete(one))["metadata"]
        assert (metadata["deletionGracePeriodSeconds"], "deletionTimestamp" in metadata) == (30, True)
        assert cluster.api.read(one)["metadata"]["deletionTimestamp"] == metadata["deletionTimestamp"]
        done(cluster.api.delete(one, {"gracePeriodSeconds": 0}))
        assert cluster.api.get(one).refusal == (404, "NotFound")

    def test_a_second_deletion_may_only_shorten_the_grace_period(self, cluster: Cluster, namespace: str) -> None:
        host = unique("host")
        cluster.api.create(path("nodes"), node(host))
        cluster.api.create(path("pods", namespace), bound("one", host))
        one = path("pods", namespace, "one")
        graces = [done(cluster.api.delete(one, {"gracePeriodSeconds": each}))["metadata"] for each in (20, 60, 5)]
        assert [each["deletionGracePeriodSeconds"] for each in graces] == [20, 20, 5]

    @pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
    def test_one_that_has_ended_goes_at_once(self, cluster: Cluster, namespace: str, phase: str) -> None:
        host = unique("host")
        cluster.api.create(path("nodes"), node(host))
        cluster.api.create(path("pods", namespace), bound("one", host))
        one = path("pods", namespace, "one")
        done(cluster.api.patch(f"{one}/status", {"status": {"phase": phase}}))
        done(cluster.api.delete(one))
        assert cluster.api.get(one).refusal == (404, "NotFound")


class TestFinalizers:
    @pytest.mark.parametrize(("plural", "obj"), [("pods", pod()), ("jobsets", jobset("one"))])
    def test_they_keep_an_object_until_the_last_one_went(
        self, cluster: Cluster, namespace: str, plural: str, obj: Json
    ) -> None:
        one = path(plural, namespace, "one")
        held = obj | {"metadata": obj["metadata"] | {"finalizers": ["example.com/a", "example.com/b"]}}
        cluster.api.create(path(plural, namespace), held)
        done(cluster.api.delete(one))
        assert "deletionTimestamp" in cluster.api.read(one)["metadata"]
        done(cluster.api.patch(one, {"metadata": {"finalizers": ["example.com/b"]}}))
        assert cluster.api.get(one).code == 200
        done(cluster.api.patch(one, FREED))
        gone(cluster.api, one)

    def test_an_object_that_goes_gets_no_new_one(self, cluster: Cluster, namespace: str) -> None:
        one = path("jobsets", namespace, "train")
        cluster.api.create(path("jobsets", namespace), jobset(finalizers=["example.com/a"]))
        done(cluster.api.delete(one))
        late = {"metadata": {"finalizers": ["example.com/a", "example.com/late"]}}
        assert cluster.api.patch(one, late).refusal == (422, "Invalid")


class TestDependents:
    """A JobSet, its suspended Job, and a pod of the Job."""

    @staticmethod
    def family(api: Api, namespace: str, *, blocks: bool) -> None:
        top = api.create(path("jobsets", namespace), jobset())
        middle = api.create(path("jobs", namespace), job(**owned_by(top, blocks=blocks)))
        api.create(path("configmaps", namespace), meta("bottom", **owned_by(middle, blocks=blocks)))
        collector_has_caught_up(api, namespace)

    @staticmethod
    def left(api: Api, namespace: str) -> list[str]:
        found = [api.read(path(plural, namespace))["items"] for plural in ("jobsets", "jobs", "configmaps")]
        names = [each["metadata"]["name"] for items in found for each in items]
        return [name for name in names if name in {"train", "work", "bottom"}]

    @pytest.mark.parametrize("propagation", ["Background", "Foreground"])
    @pytest.mark.parametrize("blocks", [True, False])
    def test_they_go_with_their_owner(
        self, cluster: Cluster, namespace: str, propagation: str, *, blocks: bool
    ) -> None:
        self.family(cluster.api, namespace, blocks=blocks)
        done(cluster.api.delete(path("jobsets", namespace, "train"), {"propagationPolicy": propagation}))
        until(lambda: not self.left(cluster.api, namespace), "the end of the dependents")

    def test_by_default_those_of_a_custom_object_go(self, cluster: Cluster, namespace: str) -> None:
        self.family(cluster.api, namespace, blocks=True)
        done(cluster.api.delete(path("jobsets", namespace, "train")))
        until(lambda: not self.left(cluster.api, namespace), "the end of the dependents")

    def test_orphans_stay(self, cluster: Cluster, namespace: str) -> None:
        self.family(cluster.api, namespace, blocks=True)
        done(cluster.api.delete(path("jobsets", namespace, "train"), {"propagationPolicy": "Orphan"}))
        gone(cluster.api, path("jobsets", namespace, "train"))
        assert "ownerReferences" not in cluster.api.read(path("jobs", namespace, "work"))["metadata"]
        assert self.left(cluster.api, namespace) == ["work", "bottom"]

    def test_a_job_keeps_its_pods_unless_asked_otherwise(self, cluster: Cluster, namespace: str) -> None:
        self.family(cluster.api, namespace, blocks=True)
        answer = cluster.api.delete(path("jobs", namespace, "work"))
        assert (answer.body["kind"], answer.body["metadata"]["name"]) == ("Job", "work")
        gone(cluster.api, path("jobs", namespace, "work"))
        assert self.left(cluster.api, namespace) == ["train", "bottom"]

    def test_a_foreground_deletion_waits_for_those_that_block_it(self, cluster: Cluster, namespace: str) -> None:
        top = cluster.api.create(path("jobsets", namespace), jobset())
        held = meta("held", finalizers=["example.com/a"], **owned_by(top, blocks=True))
        cluster.api.create(path("configmaps", namespace), held)
        done(cluster.api.delete(path("jobsets", namespace, "train"), {"propagationPolicy": "Foreground"}))
        going(cluster.api, path("configmaps", namespace, "held"))
        assert "foregroundDeletion" in going(cluster.api, path("jobsets", namespace, "train"))["finalizers"]
        done(cluster.api.patch(path("configmaps", namespace, "held"), FREED))
        gone(cluster.api, path("jobsets", namespace, "train"))

    def test_one_stays_while_another_owner_lives(self, cluster: Cluster, namespace: str) -> None:
        owners = [cluster.api.create(path("jobsets", namespace), jobset(name)) for name in ("first", "second")]
        references = [owned_by(each)["ownerReferences"][0] | {"controller": False} for each in owners]
        cluster.api.create(path("configmaps", namespace), meta("both", ownerReferences=references))
        done(cluster.api.delete(path("jobsets", namespace, "first")))
        both = path("configmaps", namespace, "both")
        until(
            lambda: [each["name"] for each in cluster.api.read(both)["metadata"]["ownerReferences"]] == ["second"],
            "the reference to the first owner to go",
        )


class TestRequests:
    def test_a_custom_object_s_deletion_is_acknowledged(self, cluster: Cluster, namespace: str) -> None:
        made = cluster.api.create(path("jobsets", namespace), jobset())
        answer = done(cluster.api.delete(path("jobsets", namespace, "train")))
        assert (answer["kind"], answer["status"], answer["details"]["uid"]) == (
            "Status",
            "Success",
            made["metadata"]["uid"],
        )

    def test_what_is_not_there_is_not_found(self, cluster: Cluster, namespace: str) -> None:
        assert cluster.api.delete(path("pods", namespace, "one")).refusal == (404, "NotFound")

    @pytest.mark.parametrize("precondition", [{"uid": "another"}, {"resourceVersion": "1"}])
    def test_it_may_be_said_of_which_object(self, cluster: Cluster, namespace: str, precondition: Json) -> None:
        cluster.api.create(path("pods", namespace), pod())
        refused = cluster.api.delete(path("pods", namespace, "one"), {"preconditions": precondition})
        assert refused.refusal == (409, "Conflict")
        assert cluster.api.get(path("pods", namespace, "one")).code == 200

    def test_a_dry_run_deletes_nothing(self, cluster: Cluster, namespace: str) -> None:
        cluster.api.create(path("pods", namespace), pod())
        cluster.api.create(path("jobsets", namespace), jobset())
        done(cluster.api.delete(path("pods", namespace, "one"), {"dryRun": ["All"]}))
        done(cluster.api.delete(path("jobsets", namespace, "train"), dryRun="All"))
        for where in (path("pods", namespace, "one"), path("jobsets", namespace, "train")):
            assert "deletionTimestamp" not in cluster.api.read(where)["metadata"]

    def test_options_in_the_body_are_all_the_options(self, cluster: Cluster, namespace: str) -> None:
        cluster.api.create(path("pods", namespace), pod())
        done(cluster.api.delete(path("pods", namespace, "one"), {"gracePeriodSeconds": 0}, dryRun="All"))
        assert cluster.api.get(path("pods", namespace, "one")).refusal == (404, "NotFound")

    @pytest.mark.parametrize(
        ("options", "code"),
        [
            ({"propagationPolicy": "Sometimes"}, 422),
            ({"dryRun": ["Some"]}, 422),
            ({"gracePeriodSeconds": "soon"}, 400),
        ],
    )
    def test_options_that_cannot_be_are_refused(
        self, cluster: Cluster, namespace: str, options: Json, code: int
    ) -> None:
        cluster.api.create(path("pods", namespace), pod())
        assert cluster.api.delete(path("pods", namespace, "one"), options).code == code
        assert cluster.api.get(path("pods", namespace, "one")).code == 200

    def test_a_collection_is_deleted_by_a_selector(self, cluster: Cluster, namespace: str) -> None:
        cluster.api.create(path("pods", namespace), pod("one", labels={"app": "a"}))
        cluster.api.create(path("pods", namespace), pod("two"))
        done(cluster.api.delete(path("pods", namespace), labelSelector="app=a"))
        gone(cluster.api, path("pods", namespace, "one"))
        assert cluster.api.get(path("pods", namespace, "two")).code == 200


class TestEvictions:
    @staticmethod
    def evicted(name: str = "one", **options: object) -> Json:
        return {"apiVersion": "policy/v1", "kind": "Eviction"} | meta(name) | {"deleteOptions": options}

    def test_an_evicted_pod_goes_like_a_deleted_one_and_says_why(self, cluster: Cluster, namespace: str) -> None:
        host = unique("host")
        cluster.api.create(path("nodes"), node(host))
        cluster.api.create(path("pods", namespace), bound("one", host))
        eviction = path("pods", namespace, "one", "eviction")
        answer = cluster.api.post(eviction, self.evicted())
        assert (answer.code, answer.body["status"]) == (201, "Success")
        pod = cluster.api.read(path("pods", namespace, "one"))
        assert pod["metadata"]["deletionGracePeriodSeconds"] == 30
        reasons = {each["type"]: each["reason"] for each in pod["status"]["conditions"]}
        assert reasons["DisruptionTarget"] == "EvictionByEvictionAPI"
        assert cluster.api.post(eviction, self.evicted(gracePeriodSeconds=0)).code == 201
        gone(cluster.api, path("pods", namespace, "one"))

    def test_a_pod_that_is_not_there_is_not_found(self, cluster: Cluster, namespace: str) -> None:
        refused = cluster.api.post(path("pods", namespace, "one", "eviction"), self.evicted())
        assert refused.refusal == (404, "NotFound")

    def test_another_pod_s_eviction_is_refused(self, cluster: Cluster, namespace: str) -> None:
        cluster.api.create(path("pods", namespace), pod())
        refused = cluster.api.post(path("pods", namespace, "one", "eviction"), self.evicted("two"))
        assert refused.refusal == (400, "BadRequest")


# namespaces, from the first to the last object in them


def test_nothing_is_created_in_a_namespace_that_is_not_there(cluster: Cluster) -> None:
    refused = cluster.api.post(path("events", "nowhere"), meta("one", namespace="nowhere") | {"involvedObject": {}})
    assert refused.refusal == (404, "NotFound")
    assert refused.body["details"]["kind"] == "namespaces"


def test_lists_of_a_namespace_that_is_not_there_are_empty(cluster: Cluster) -> None:
    assert cluster.api.read(path("pods", "nowhere"))["items"] == []


def test_a_namespace_goes_with_all_that_is_in_it(cluster: Cluster, namespace: str) -> None:
    for plural, obj in (("pods", pod()), ("jobs", job()), ("jobsets", jobset()), ("configmaps", meta("settings"))):
        cluster.api.create(path(plural, namespace), obj)
    answer = done(cluster.api.delete(path("namespaces", name=namespace)))
    assert (answer["kind"], answer["status"]["phase"]) == ("Namespace", "Terminating")
    until(lambda: cluster.api.get(path("namespaces", name=namespace)).code == 404, "its end")
    for plural in ("pods", "jobs", "jobsets", "configmaps"):
        assert cluster.api.read(path(plural, namespace))["items"] == []


def test_nothing_is_created_while_a_namespace_goes_and_the_refusal_says_why(cluster: Cluster, namespace: str) -> None:
    cluster.api.create(path("configmaps", namespace), meta("held", finalizers=["example.com/a"]))
    done(cluster.api.delete(path("namespaces", name=namespace)))
    refused = cluster.api.post(path("configmaps", namespace), meta("late"))
    assert refused.refusal == (403, "Forbidden")
    assert "NamespaceTerminating" in {each["reason"] for each in refused.body["details"]["causes"]}
    held = path("configmaps", namespace, "held")
    until(lambda: "deletionTimestamp" in cluster.api.read(held)["metadata"], "the deletion")
    done(cluster.api.patch(held, {"metadata": {"finalizers": None}}))
    until(lambda: cluster.api.get(path("namespaces", name=namespace)).code == 404, "its end")


@pytest.mark.parametrize("name", ["default", "kube-system"])
def test_the_first_namespaces_are_there_to_stay(cluster: Cluster, name: str) -> None:
    assert cluster.api.delete(path("namespaces", name=name)).refusal == (403, "Forbidden")


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-node-lease"])
def test_some_namespaces_are_there_from_the_start(cluster: Cluster, name: str) -> None:
    until(lambda: cluster.api.get(path("namespaces", name=name)).code == 200, name)


def test_a_new_namespace_gets_an_account_for_its_pods(cluster: Cluster) -> None:
    name = unique("team")
    cluster.api.create(path("namespaces"), meta(name))
    account = path("serviceaccounts", name, "default")
    until(lambda: cluster.api.get(account).code == 200, "its default account")
