import pytest

from infra.local.cluster.attributes import Attributes, read

JOBSETS = {"group": "jobset.x-k8s.io", "version": "v1alpha2", "resource": "jobsets"}
OURS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/team"
PODS = {"version": "v1", "resource": "pods"}
TEAM = {"namespace": "team"}
NAMESPACES = {"version": "v1", "resource": "namespaces"}
LOG = {"name": "one", "subresource": "log"}


@pytest.mark.parametrize(
    ("method", "path", "wanted"),
    [
        ("GET", "/version", {"verb": "get", "path": "/version"}),
        ("GET", "/api/v1", {"verb": "get", "path": "/api/v1"}),
        ("GET", "/apis/apps/v1", {"verb": "get", "path": "/apis/apps/v1"}),
        ("POST", "/local/faults", {"verb": "post", "path": "/local/faults"}),
        ("GET", "/api/v1/pods", {"verb": "list"} | PODS),
        ("GET", "/api/v1/namespaces/team/pods", {"verb": "list"} | PODS | TEAM),
        ("GET", "/api/v1/namespaces/team/pods/one/log", {"verb": "get"} | LOG | PODS | TEAM),
        ("DELETE", "/api/v1/namespaces/team/pods", {"verb": "deletecollection"} | PODS | TEAM),
        ("DELETE", "/api/v1/namespaces/team/pods/one", {"verb": "delete", "name": "one"} | PODS | TEAM),
        ("POST", f"{OURS}/jobsets", {"verb": "create"} | JOBSETS | TEAM),
        ("PUT", f"{OURS}/jobsets/a", {"verb": "update", "name": "a"} | JOBSETS | TEAM),
        ("PATCH", "/api/v1/nodes/host", {"verb": "patch", "version": "v1", "resource": "nodes", "name": "host"}),
        ("GET", "/api/v1/namespaces", {"verb": "list"} | NAMESPACES),
        # The namespace attribute of a Namespace is its own name.
        ("GET", "/api/v1/namespaces/team", {"verb": "get", "name": "team"} | NAMESPACES | TEAM),
        (
            "PUT",
            "/api/v1/namespaces/team/status",
            {"verb": "update", "name": "team", "subresource": "status"} | NAMESPACES | TEAM,
        ),
    ],
)
def test_a_request_wants_what_its_path_says(method: str, path: str, wanted: dict[str, str]) -> None:
    assert read(method, path, {}) == Attributes(**wanted)


def test_a_list_that_goes_on_is_a_watch() -> None:
    assert read("GET", "/api/v1/pods", {"watch": "true"}).verb == "watch"
    assert read("GET", "/api/v1/pods", {"watch": "false"}).verb == "list"


def test_a_list_of_one_name_names_it() -> None:
    listed = read("GET", "/api/v1/pods", {"fieldSelector": "status.phase=Running,metadata.name=one"})
    assert (listed.verb, listed.name) == ("list", "one")
    assert read("GET", "/api/v1/pods", {"fieldSelector": "metadata.name!=one"}).name == ""
