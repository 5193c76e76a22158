"""Lists: in pages of one version, chosen by selectors, and as tables."""

from __future__ import annotations

import pytest

from tests.cluster.asking import LIVE, TABLE, Api, Json, done, path
from tests.cluster.builders import jobset, node, pod
from tests.cluster.servers import Cluster, unique

pytestmark = LIVE


def names(listed: Json) -> list[str]:
    return [each["metadata"]["name"] for each in listed["items"]]


def pods(api: Api, namespace: str, count: int) -> None:
    for index in range(count):
        api.create(path("pods", namespace), pod(f"pod-{index}"))


class TestPages:
    @pytest.mark.parametrize("plural", ["pods", "jobsets"])
    def test_they_are_of_one_version(self, cluster: Cluster, namespace: str, plural: str) -> None:
        make = pod if plural == "pods" else jobset
        where = path(plural, namespace)
        for index in range(5):
            cluster.api.create(where, make(f"one-{index}"))
        page = cluster.api.read(where, limit=2)
        assert page["metadata"]["remainingItemCount"] == 3
        cluster.api.create(where, make("one-0-late"))
        done(cluster.api.delete(f"{where}/one-4"))
        seen, versions = names(page), {page["metadata"]["resourceVersion"]}
        while token := page["metadata"].get("continue"):
            page = cluster.api.read(where, **{"limit": 2, "continue": token})
            versions.add(page["metadata"]["resourceVersion"])
            seen += names(page)
        assert (seen, len(versions)) == ([f"one-{index}" for index in range(5)], 1)

    def test_the_last_one_says_so(self, cluster: Cluster, namespace: str) -> None:
        pods(cluster.api, namespace, 2)
        metadata = cluster.api.read(path("pods", namespace), limit=2)["metadata"]
        assert not metadata.get("continue")
        assert not metadata.get("remainingItemCount")

    def test_a_selector_chooses_within_pages(self, cluster: Cluster, namespace: str) -> None:
        for index in range(6):
            labels = {"even": str(index % 2 == 0).lower()}
            cluster.api.create(path("jobsets", namespace), jobset(f"one-{index}", labels=labels))
        seen: list[str] = []
        token = ""
        while True:
            chosen = {"labelSelector": "even=true", "limit": 2} | ({"continue": token} if token else {})
            page = cluster.api.read(path("jobsets", namespace), **chosen)
            seen += names(page)
            if not (token := page["metadata"].get("continue", "")):
                break
        assert seen == ["one-0", "one-2", "one-4"]

    @pytest.mark.parametrize("wrong", [{"continue": "x"}, {"limit": "many"}])
    def test_what_is_no_page_is_refused(self, cluster: Cluster, namespace: str, wrong: Json) -> None:
        assert cluster.api.get(path("pods", namespace), **wrong).refusal == (400, "BadRequest")


class TestVersions:
    def test_a_list_has_all_that_was_written_before(self, cluster: Cluster, namespace: str) -> None:
        for index in range(5):
            made = cluster.api.create(path("jobsets", namespace), jobset(f"one-{index}"))
            listed = cluster.api.read(path("jobsets", namespace))
            assert len(listed["items"]) == index + 1
            assert int(listed["metadata"]["resourceVersion"]) >= int(made["metadata"]["resourceVersion"])

    def test_it_is_ordered_by_namespace_and_name(self, cluster: Cluster, namespace: str) -> None:
        for name in ("b", "a", "c"):
            cluster.api.create(path("jobsets", namespace), jobset(name))
        listed = cluster.api.read(path("jobsets"))["items"]
        keys = [(each["metadata"]["namespace"], each["metadata"]["name"]) for each in listed]
        assert keys == sorted(keys)

    def test_an_exact_version_is_listed_as_it_was(self, cluster: Cluster, namespace: str) -> None:
        where = path("jobsets", namespace)
        cluster.api.create(where, jobset("one"))
        then = cluster.api.create(where, jobset("two"))["metadata"]["resourceVersion"]
        done(cluster.api.delete(f"{where}/two"))
        cluster.api.create(where, jobset("three"))
        exact = cluster.api.read(where, resourceVersion=then, resourceVersionMatch="Exact")
        later = cluster.api.read(where, resourceVersion=then, resourceVersionMatch="NotOlderThan")
        assert (names(exact), exact["metadata"]["resourceVersion"]) == (["one", "two"], then)
        assert names(later) == ["one", "three"]

    def test_any_version_will_do_for_zero(self, cluster: Cluster, namespace: str) -> None:
        assert cluster.api.get(path("jobsets", namespace), resourceVersion="0").code == 200


class TestSelectors:
    @pytest.mark.parametrize(
        ("selector", "chosen"),
        [
            ("app=a", ["one"]),
            ("app==a", ["one"]),
            ("app!=a", ["none", "two"]),
            ("app in (a, b)", ["one", "two"]),
            ("app notin (a)", ["none", "two"]),
            ("app", ["one", "two"]),
            ("!app", ["none"]),
            ("app,app!=b", ["one"]),
            ("app=", []),
        ],
    )
    def test_labels_choose(self, cluster: Cluster, namespace: str, selector: str, chosen: list[str]) -> None:
        for name, labels in (("one", {"app": "a"}), ("two", {"app": "b"}), ("none", {})):
            cluster.api.create(path("jobsets", namespace), jobset(name, labels=labels))
        assert names(cluster.api.read(path("jobsets", namespace), labelSelector=selector)) == chosen

    @pytest.mark.parametrize(
        ("selector", "chosen"),
        [
            ("metadata.name=one", ["one"]),
            ("metadata.name!=one", ["two"]),
            ("status.phase=Pending", ["one", "two"]),
            ("status.phase!=Pending", []),
            ("metadata.name=two,status.phase=Pending", ["two"]),
        ],
    )
    def test_fields_choose(self, cluster: Cluster, namespace: str, selector: str, chosen: list[str]) -> None:
        for name in ("one", "two"):
            cluster.api.create(path("pods", namespace), pod(name))
        assert names(cluster.api.read(path("pods", namespace), fieldSelector=selector)) == chosen

    def test_the_pods_of_a_node_are_found_in_all_namespaces(self, cluster: Cluster, namespace: str) -> None:
        host = unique("host")
        cluster.api.create(path("nodes"), node(host))
        cluster.api.create(path("pods", namespace), pod("one", spec={"nodeName": host}, labels={"app": "a"}))
        cluster.api.create(path("pods", namespace), pod("two", spec={"nodeName": host}))
        cluster.api.create(path("pods", namespace), pod("three"))
        by_field = cluster.api.read(path("pods"), fieldSelector=f"spec.nodeName={host}")
        by_both = cluster.api.read(path("pods"), fieldSelector=f"spec.nodeName={host}", labelSelector="app=a")
        assert (names(by_field), names(by_both)) == (["one", "two"], ["one"])

    def test_one_object_is_found_by_its_name(self, cluster: Cluster, namespace: str) -> None:
        for name in ("one", "two"):
            cluster.api.create(path("jobsets", namespace), jobset(name))
        assert names(cluster.api.read(path("jobsets", namespace), fieldSelector="metadata.name=two")) == ["two"]

    @pytest.mark.parametrize("wrong", [{"labelSelector": "a b"}, {"fieldSelector": "spec.containers=x"}])
    def test_a_selector_that_cannot_be_read_is_refused(self, cluster: Cluster, namespace: str, wrong: Json) -> None:
        assert cluster.api.get(path("pods", namespace), **wrong).refusal == (400, "BadRequest")


class TestTables:
    @pytest.mark.parametrize("plural", ["pods", "nodes", "jobs", "jobsets", "namespaces", "events", "configmaps"])
    def test_every_kind_has_one_with_its_names(self, cluster: Cluster, plural: str) -> None:
        shown = cluster.api.read(path(plural), accept=TABLE)
        columns = [each["name"] for each in shown["columnDefinitions"]]
        assert (shown["kind"], "Name" in columns) == ("Table", True)
        assert all(len(row["cells"]) == len(columns) for row in shown["rows"] or ())

    def test_a_row_has_its_object_s_metadata_or_all_of_it(self, cluster: Cluster, namespace: str) -> None:
        pods(cluster.api, namespace, 1)
        partial = cluster.api.read(path("pods", namespace), accept=TABLE)
        whole = cluster.api.read(path("pods", namespace), accept=TABLE, includeObject="Object")
        kinds = [shown["rows"][0]["object"]["kind"] for shown in (partial, whole)]
        assert kinds == ["PartialObjectMetadata", "Pod"]
