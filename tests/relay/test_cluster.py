"""Single calls to an API server whose answer the test sets."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from kubernetes import client

from relay.cluster import Cluster
from relay.events import event
from relay.objects import Pool, PoolKey, WorkloadName
from tests.builders import an_owner
from tests.relay.objects import bound_pod, container, jobset, node, read_jobset
from tests.relay.test_events import update
from tpu_slices.domain.model.observations import LegacyPool
from tpu_slices.domain.model.slices import ClaimId, OwnerKind
from tpu_slices.domain.planning.host_labels import NODE_POOL
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_standins.testing.waiting import beside

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

LLAMA = an_owner("llama", namespace="research")


class AnsweringServer(ThreadingHTTPServer):
    """Answers every request alike, and records the requests."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.code = 200
        self.body = b"{}"
        self.requests: list[tuple[str, Any]] = []
        self.content_type = ""

    def answer(self, code: int, body: Any) -> None:
        self.code, self.body = code, body if isinstance(body, bytes) else json.dumps(body).encode()


class _Handler(BaseHTTPRequestHandler):
    server: AnsweringServer

    def do_GET(self) -> None:
        self._serve(None)

    def do_POST(self) -> None:
        self._serve(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def do_PATCH(self) -> None:
        self.server.content_type = self.headers["Content-Type"]
        self.do_POST()

    def log_message(self, format: str, *_: object) -> None:  # noqa: A002 - the base class names it so
        """Log nothing."""

    def _serve(self, body: Any) -> None:
        self.server.requests.append((self.path, body))
        self.send_response(self.server.code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)


@pytest.fixture
def server() -> Iterator[AnsweringServer]:
    with AnsweringServer() as answering, beside(partial(answering.serve_forever, 0.02), answering.shutdown):
        yield answering


@pytest.fixture
def cluster(server: AnsweringServer) -> Iterator[Cluster]:
    with client.ApiClient(client.Configuration(host=f"http://127.0.0.1:{server.server_port}")) as api:
        yield Cluster(api)
        api.rest_client.pool_manager.clear()


def refusal(code: int, reason: str, **details: str) -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "details": details,
    }


def test_a_jobset_is_returned_unchanged(server: AnsweringServer, cluster: Cluster) -> None:
    server.answer(200, jobset())
    assert cluster.workload(LLAMA) == jobset()
    assert server.requests == [("/apis/jobset.x-k8s.io/v1alpha2/namespaces/research/jobsets/llama", None)]


def test_a_jobset_that_is_not_found_is_none(server: AnsweringServer, cluster: Cluster) -> None:
    server.answer(404, refusal(404, "NotFound", name="llama", group="jobset.x-k8s.io", kind="jobsets"))
    assert cluster.workload(LLAMA) is None


@pytest.mark.parametrize(
    ("code", "body"),
    [
        (404, b"404 page not found\n"),
        (404, refusal(404, "NotFound")),
        (404, refusal(404, "NotFound", name="research", kind="namespaces")),
        (403, refusal(403, "Forbidden", name="llama", kind="jobsets")),
        (503, refusal(503, "ServiceUnavailable")),
    ],
    ids=["no such path", "no such resource", "another object", "forbidden", "unavailable"],
)
def test_any_other_refusal_of_a_jobset_is_a_temporary_error(
    server: AnsweringServer, cluster: Cluster, code: int, body: Any
) -> None:
    server.answer(code, body)
    with pytest.raises(Temporary, match=f"the API server refused: {code}"):
        cluster.workload(LLAMA)


def test_an_unreachable_server_is_a_temporary_error(server: AnsweringServer, cluster: Cluster) -> None:
    server.socket.close()
    with pytest.raises(Temporary, match="the API server does not answer"):
        cluster.workload(LLAMA)


NAMED = WorkloadName("research", "llama")
NO_SUCH_PATH = (404, b"404 page not found\n")


def test_a_workload_by_its_name_is_read_as_its_watch_reads_it(server: AnsweringServer, cluster: Cluster) -> None:
    server.answer(200, jobset())
    assert cluster.workload_named(NAMED) == read_jobset(jobset())
    server.answer(404, refusal(404, "NotFound", name="llama", group="jobset.x-k8s.io", kind="jobsets"))
    assert cluster.workload_named(NAMED) is None
    server.answer(200, {"metadata": {}})
    assert cluster.workload_named(NAMED) is None


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../pods", "a/b", "Llama", "llama-", "a..b", "llama\n", "ll%61ma", "a" * 254]
)
def test_nothing_is_asked_about_a_name_that_no_object_can_have(
    server: AnsweringServer, cluster: Cluster, name: str
) -> None:
    assert cluster.workload_named(WorkloadName("research", name)) is None
    assert server.requests == []


def test_there_is_no_workload_of_a_kind_that_is_not_installed(server: AnsweringServer, cluster: Cluster) -> None:
    server.answer(*NO_SUCH_PATH)
    assert cluster.workload_named(NAMED._replace(kind=OwnerKind.LEADER_WORKER_SET)) is None
    paths = [path for path, _ in server.requests]
    assert paths == [
        "/apis/leaderworkerset.x-k8s.io/v1/namespaces/research/leaderworkersets/llama",
        "/apis/leaderworkerset.x-k8s.io/v1",
    ]


@pytest.mark.parametrize("code", [403, 500, 503])
def test_a_workload_that_cannot_be_read_by_its_name_is_a_temporary_error(
    server: AnsweringServer, cluster: Cluster, code: int
) -> None:
    server.answer(code, refusal(code, "Trouble"))
    with pytest.raises(Temporary, match=f"refused: {code}"):
        cluster.workload_named(NAMED)


def test_an_event_is_created_with_all_its_fields(server: AnsweringServer, cluster: Cluster) -> None:
    made = event(update(), None)
    server.answer(201, made)
    cluster.post(made)
    ((path, body),) = server.requests
    assert path == "/api/v1/namespaces/research/events"
    assert json.loads(json.dumps(body).replace("+00:00", "Z")) == made


def test_an_event_that_exists_already_counts_as_created(server: AnsweringServer, cluster: Cluster) -> None:
    server.answer(409, refusal(409, "AlreadyExists", kind="events"))
    cluster.post(event(update(), None))
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("code", "kind"), [(422, Permanent), (400, Permanent), (404, Temporary), (403, Temporary), (500, Temporary)]
)
def test_a_refused_event_is_a_permanent_error_only_if_it_is_invalid(
    server: AnsweringServer, cluster: Cluster, code: int, kind: type[Exception]
) -> None:
    server.answer(code, refusal(code, "Whatever"))
    with pytest.raises(kind, match=f"refused: {code}"):
        cluster.post(event(update(), None))


READS: list[tuple[str, Callable[[Cluster], Any]]] = [
    (
        "/api/v1/namespaces/research/persistentvolumeclaims/data",
        lambda cluster: cluster.volume_claim("research", "data"),
    ),
    ("/api/v1/persistentvolumes/pv-1", lambda cluster: cluster.volume("pv-1")),
    ("/apis/apps/v1/namespaces/system/deployments/manager", lambda cluster: cluster.deployment("system", "manager")),
]


@pytest.mark.parametrize(("path", "read"), READS)
def test_other_objects_are_returned_as_they_are(
    server: AnsweringServer, cluster: Cluster, path: str, read: Callable[[Cluster], Any]
) -> None:
    server.answer(200, {"spec": {"anything": 1}})
    assert read(cluster) == {"spec": {"anything": 1}}
    assert server.requests == [(path, None)]
    server.answer(404, refusal(404, "NotFound"))
    assert read(cluster) is None
    server.answer(403, refusal(403, "Forbidden"))
    with pytest.raises(Temporary, match="refused: 403"):
        read(cluster)


@pytest.mark.parametrize("exactly", [True, False])
def test_the_pods_that_hold_chips_of_a_node_are_those_that_have_not_ended(
    server: AnsweringServer, cluster: Cluster, exactly: bool
) -> None:
    ended, running, follower = bound_pod(1, "node-7", phase="Succeeded"), bound_pod(0, "node-7"), bound_pod(2, "node-7")
    follower["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] = "3"
    follower["metadata"]["deletionTimestamp"] = "2026-11-01T12:00:30Z"
    without_chips = bound_pod(3, "node-7")
    without_chips["spec"] = {**without_chips["spec"], "containers": [container(0)]}
    server.answer(200, {"items": [ended, running, follower, without_chips]})
    first, second = cluster.chip_pods_on("node-7", exactly=exactly)
    assert (first.pod, first.node, first.ends_by) == (f"research/{running['metadata']['name']}", "node-7", None)
    assert first.member is not None
    assert second.member is not None
    assert (second.member.job, second.ends_by) == ("llama-workers-2", datetime(2026, 11, 1, 12, 0, 30, tzinfo=UTC))
    asked = [parse_qs(urlsplit(path).query) for path, _ in server.requests]
    version = {} if exactly else {"resourceVersion": ["0"]}
    assert asked == [{"fieldSelector": ["spec.nodeName=node-7"], **version}]
    server.answer(500, refusal(500, "InternalError"))
    with pytest.raises(Temporary, match="refused: 500"):
        cluster.chip_pods_on("node-7", exactly=exactly)


@pytest.mark.parametrize(
    ("pool", "selector"),
    [
        (PoolKey(ClaimId("tpu-a-0-bbbbbbbbbbbbb"), 3), f"{NODE_POOL}=tpu-a-0-bbbbbbbbbbbbb-3"),
        (LegacyPool(name="p", namespace="", jobset="", job=""), f"{NODE_POOL}=p"),
    ],
    ids=["ours", "legacy"],
)
def test_the_nodes_of_a_pool_are_listed_by_its_name(
    server: AnsweringServer, cluster: Cluster, pool: Pool, selector: str
) -> None:
    server.answer(200, {"items": [node(1), node(2)]})
    assert cluster.nodes_of(pool) == {node(1)["metadata"]["name"], node(2)["metadata"]["name"]}
    ((path, _),) = server.requests
    assert path.startswith("/api/v1/nodes?")
    assert parse_qs(urlsplit(path).query) == {"labelSelector": [selector]}
    server.answer(403, refusal(403, "Forbidden"))
    with pytest.raises(Temporary, match="refused: 403"):
        cluster.nodes_of(pool)


PATCH = {"metadata": {"resourceVersion": "7", "labels": {"a": "b"}}, "spec": {"taints": []}}


@pytest.mark.parametrize("code", [200, 404, 409])
def test_a_node_that_is_gone_or_has_changed_is_no_error_of_a_patch(
    server: AnsweringServer, cluster: Cluster, code: int
) -> None:
    server.answer(code, {} if code == 200 else refusal(code, "Whatever"))
    cluster.patch_node("n-1", PATCH)
    assert server.requests == [("/api/v1/nodes/n-1", PATCH)]
    assert server.content_type == "application/merge-patch+json"


@pytest.mark.parametrize(("code", "kind"), [(403, Temporary), (422, Permanent), (500, Temporary)])
def test_a_refused_patch_is_a_permanent_error_only_if_it_is_invalid(
    server: AnsweringServer, cluster: Cluster, code: int, kind: type[Exception]
) -> None:
    server.answer(code, refusal(code, "Whatever"))
    with pytest.raises(kind, match=f"refused: {code}"):
        cluster.patch_node("n-1", PATCH)


GONE = {"kind": "Status", "reason": "NotFound", "details": {"kind": "namespaces", "name": "research"}}
TERMINATING = {"kind": "Status", "reason": "Forbidden", "details": {"causes": [{"reason": "NamespaceTerminating"}]}}


@pytest.mark.parametrize(("code", "status"), [(404, GONE), (403, TERMINATING)], ids=["gone", "terminating"])
def test_an_event_in_a_namespace_that_is_terminating_or_gone_is_dropped(
    server: AnsweringServer, cluster: Cluster, code: int, status: Any
) -> None:
    server.answer(code, status)
    cluster.post(event(update(), None))
    cluster.renew(event(update(), None))


def test_an_event_that_is_forbidden_for_another_reason_is_a_temporary_error(
    server: AnsweringServer, cluster: Cluster
) -> None:
    server.answer(403, {"kind": "Status", "reason": "Forbidden"})
    with pytest.raises(Temporary):
        cluster.renew(event(update(), None))
