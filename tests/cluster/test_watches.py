"""Watches: what they tell, in which order, with which versions, and from when on."""

from __future__ import annotations

import pytest

from tests.cluster.asking import LIVE, TABLE, Api, Json, done, path, version_of
from tests.cluster.builders import jobset, meta, node, pod
from tests.cluster.servers import REAL, WINDOW, Cluster, unique
from tpu_standins.testing.waiting import until

pytestmark = LIVE

AT = "2026-01-01T00:00:00Z"


def told(events: list[Json]) -> list[tuple[str, str]]:
    return [(each["type"], each["object"]["metadata"]["name"]) for each in events]


def labelled(api: Api, where: str, **labels: str) -> None:
    done(api.patch(where, {"metadata": {"labels": labels}}))


def now(api: Api, where: str) -> str:
    """Return the version of a list."""
    return str(api.read(where)["metadata"]["resourceVersion"])


def forgotten(cluster: Cluster, namespace: str) -> tuple[str, str]:
    """Return a collection and a version of it that is too old: ours has a window, on the other the first one is."""
    if cluster.name == REAL:
        return path("jobsets"), "1"
    where = path("configmaps", namespace)
    old: str = cluster.api.create(where, meta("busy"))["metadata"]["resourceVersion"]
    for number in range(WINDOW + 1):
        labelled(cluster.api, f"{where}/busy", number=str(number))
    return where, old


@pytest.mark.parametrize("version", [{}, {"resourceVersion": "0"}])
def test_one_without_a_version_begins_with_what_is_there(cluster: Cluster, namespace: str, version: Json) -> None:
    where = path("jobsets", namespace)
    cluster.api.create(where, jobset("old"))
    assert now(cluster.api, where)
    with cluster.api.watch(where, **version) as events:
        assert told(events.changes(1)) == [("ADDED", "old")]
        cluster.api.create(where, jobset("new"))
        done(cluster.api.delete(f"{where}/old"))
        assert told(events.changes(2)) == [("ADDED", "new"), ("DELETED", "old")]


def test_one_goes_on_from_the_version_of_a_list(cluster: Cluster, namespace: str) -> None:
    where = path("jobsets", namespace)
    cluster.api.create(where, jobset("old"))
    version = now(cluster.api, where)
    cluster.api.create(where, jobset("meanwhile"))
    with cluster.api.watch(where, resourceVersion=version) as events:
        assert told(events.changes(1)) == [("ADDED", "meanwhile")]


@pytest.mark.parametrize(("plural", "obj"), [("jobsets", jobset("one")), ("pods", pod())])
def test_versions_rise_over_all_events_whatever_changed(
    cluster: Cluster, namespace: str, plural: str, obj: Json
) -> None:
    where = path(plural, namespace)
    one = f"{where}/one"
    with cluster.api.watch(where, resourceVersion=now(cluster.api, where)) as events:
        written = [cluster.api.create(where, obj)]
        for number in range(3):
            written.append(done(cluster.api.patch(one, {"metadata": {"labels": {"n": str(number)}}})))
            condition = {
                "type": "Test",
                "status": "True",
                "reason": f"R{number}",
                "message": "",
                "lastTransitionTime": AT,
            }
            status = {"conditions": [condition]}
            written.append(done(cluster.api.patch(f"{one}/status", {"status": status})))
        done(cluster.api.delete(one))
        seen = events.until(lambda event: event["type"] == "DELETED")
    versions = [int(version_of(each)) for each in seen]
    assert versions == sorted(set(versions))
    assert [int(each["metadata"]["resourceVersion"]) for each in written] == versions[: len(written)]
    assert [each["object"] for each in seen[: len(written)]] == written


def test_one_that_resumes_at_any_event_sees_all_that_followed(cluster: Cluster, namespace: str) -> None:
    where = path("jobsets", namespace)
    with cluster.api.watch(where, resourceVersion=now(cluster.api, where)) as events:
        cluster.api.create(where, jobset("one"))
        done(cluster.api.patch(f"{where}/one/status", {"status": {"restarts": 1}}))
        labelled(cluster.api, f"{where}/one", a="b")
        cluster.api.create(where, jobset("two"))
        seen = events.changes(4)
    for index, event in enumerate(seen):
        with cluster.api.watch(where, resourceVersion=version_of(event)) as again:
            rest = seen[index + 1 :]
            assert again.changes(len(rest)) == rest


def test_a_change_of_nothing_is_no_event(cluster: Cluster, namespace: str) -> None:
    where = path("jobsets", namespace)
    with cluster.api.watch(where, resourceVersion=now(cluster.api, where)) as events:
        cluster.api.create(where, jobset("one"))
        done(cluster.api.patch(f"{where}/one", {"spec": {"suspend": True}}))
        cluster.api.create(where, jobset("two"))
        assert told(events.changes(2)) == [("ADDED", "one"), ("ADDED", "two")]


class TestSelections:
    def test_entering_one_is_added_and_what_is_no_longer_in_it_is_deleted(
        self, cluster: Cluster, namespace: str
    ) -> None:
        where = path("jobsets", namespace)
        one = f"{where}/one"
        cluster.api.create(where, jobset("one"))
        version = now(cluster.api, where)
        with cluster.api.watch(where, labelSelector="app=a", resourceVersion=version) as events:
            labelled(cluster.api, one, app="a")
            labelled(cluster.api, one, more="x")
            labelled(cluster.api, one, app="b")
            left = cluster.api.read(one)["metadata"]["resourceVersion"]
            labelled(cluster.api, one, app="c")
            done(cluster.api.delete(one))
            cluster.api.create(where, jobset("two", labels={"app": "a"}))
            seen = events.changes(4)
        assert told(seen) == [("ADDED", "one"), ("MODIFIED", "one"), ("DELETED", "one"), ("ADDED", "two")]
        assert seen[2]["object"]["metadata"]["labels"] == {"app": "a", "more": "x"}
        assert version_of(seen[2]) == left

    def test_one_by_a_field_follows_the_pods_of_a_node(self, cluster: Cluster, namespace: str) -> None:
        host = unique("host")
        cluster.api.create(path("nodes"), node(host))
        where = path("pods", namespace)
        cluster.api.create(where, pod("one"))
        version = now(cluster.api, where)
        with cluster.api.watch(path("pods"), fieldSelector=f"spec.nodeName={host}", resourceVersion=version) as events:
            target = {"metadata": {"name": "one"}, "target": {"kind": "Node", "name": host}}
            assert cluster.api.post(path("pods", namespace, "one", "binding"), target).code == 201
            assert told(events.changes(1)) == [("ADDED", "one")]

    def test_one_object_is_followed_by_its_name(self, cluster: Cluster, namespace: str) -> None:
        where = path("jobsets", namespace)
        with cluster.api.watch(
            where, fieldSelector="metadata.name=two", resourceVersion=now(cluster.api, where)
        ) as two:
            cluster.api.create(where, jobset("one"))
            cluster.api.create(where, jobset("two"))
            assert told(two.changes(1)) == [("ADDED", "two")]


class TestDeletions:
    def test_a_pod_without_a_node_is_first_seen_to_be_deleted(self, cluster: Cluster, namespace: str) -> None:
        where = path("pods", namespace)
        cluster.api.create(where, pod("one"))
        with cluster.api.watch(where, resourceVersion=now(cluster.api, where)) as events:
            done(cluster.api.delete(f"{where}/one"))
            seen = events.changes(2)
        assert told(seen) == [("MODIFIED", "one"), ("DELETED", "one")]
        assert "deletionTimestamp" in seen[0]["object"]["metadata"]

    def test_the_last_event_has_a_version_of_its_own(self, cluster: Cluster, namespace: str) -> None:
        where = path("jobsets", namespace)
        made = cluster.api.create(where, jobset("one"))
        with cluster.api.watch(where, resourceVersion=now(cluster.api, where)) as events:
            done(cluster.api.delete(f"{where}/one"))
            [seen] = events.changes(1)
        assert int(version_of(seen)) > int(made["metadata"]["resourceVersion"])
        assert "deletionTimestamp" not in seen["object"]["metadata"]

    def test_one_with_finalizers_carries_its_deletion_to_the_end(self, cluster: Cluster, namespace: str) -> None:
        where = path("jobsets", namespace)
        cluster.api.create(where, jobset("one", finalizers=["example.com/a"]))
        with cluster.api.watch(where, resourceVersion=now(cluster.api, where)) as events:
            done(cluster.api.delete(f"{where}/one"))
            done(cluster.api.patch(f"{where}/one", {"metadata": {"finalizers": None}}))
            seen = events.until(lambda event: event["type"] == "DELETED")
        assert [each["type"] for each in seen] == ["MODIFIED"] * (len(seen) - 1) + ["DELETED"]
        assert all("deletionTimestamp" in each["object"]["metadata"] for each in seen)


class TestLimits:
    def test_a_version_that_is_too_old_is_an_error_in_the_stream(self, cluster: Cluster, namespace: str) -> None:
        where, version = forgotten(cluster, namespace)
        with cluster.api.watch(where, resourceVersion=version) as events:
            [event] = list(events)
        assert (event["type"], event["object"]["kind"]) == ("ERROR", "Status")
        assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")

    def test_one_ends_at_its_timeout(self, cluster: Cluster, namespace: str) -> None:
        where = path("jobsets", namespace)
        with cluster.api.watch(where, timeoutSeconds=1, resourceVersion=now(cluster.api, where)) as events:
            assert list(events) == []

    def test_a_bookmark_says_how_far_it_is_before_it_ends(self, cluster: Cluster, namespace: str) -> None:
        """The server sends one two seconds before the end, if anything has changed by then."""
        where, other = path("jobsets", namespace), path("jobsets", cluster.namespace())
        options = {"allowWatchBookmarks": "true", "timeoutSeconds": 5, "resourceVersion": now(cluster.api, where)}

        def seen() -> list[Json]:
            with cluster.api.watch(where, **options) as events:
                elsewhere = cluster.api.create(other, jobset(unique("train")))["metadata"]["resourceVersion"]
                bookmarks = list(events)
            return bookmarks if bookmarks and int(version_of(bookmarks[-1])) >= int(elsewhere) else []

        bookmarks = until(seen, "a bookmark of what changed elsewhere")
        assert {(each["type"], each["object"]["kind"]) for each in bookmarks} == {("BOOKMARK", "JobSet")}

    def test_kubectl_watches_a_table(self, cluster: Cluster, namespace: str) -> None:
        cluster.api.create(path("pods", namespace), pod())
        with cluster.api.watch(path("pods", namespace), accept=TABLE) as events:
            shown = next(events)["object"]
        assert (shown["kind"], shown["rows"][0]["cells"][0]) == ("Table", "one")

    @pytest.mark.parametrize("wrong", [{"timeoutSeconds": "soon"}, {"labelSelector": "a b"}])
    def test_what_cannot_be_read_is_refused(self, cluster: Cluster, namespace: str, wrong: Json) -> None:
        refused = cluster.api.get(path("jobsets", namespace), watch="true", **wrong)
        assert refused.refusal == (400, "BadRequest")
