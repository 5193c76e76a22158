"""The API server through the official client: what is watched, what is asked, what is written (Events, nodes)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import orjson
from kubernetes import client
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from relay import translate
from relay.objects import JobSetName, Kind
from relay.watch import Response, Source
from tpu_slices.ports.errors import Permanent, Temporary

JOBSETS = ("jobset.x-k8s.io", "v1alpha2")
FORBIDDEN = 403
NOT_FOUND = 404
CONFLICT = 409
_SECONDS = (5.0, 10.0)  # to connect, to answer
_QUICKLY = (1.0, 1.0)  # for what can do without an answer


def sources(api: client.ApiClient) -> tuple[Source, ...]:
    """Name what is watched; of pods only leaders and of nodes only ours come over the line."""
    core: Any = client.CoreV1Api(api)  # annotated for typed answers; all is read raw here
    custom: Any = client.CustomObjectsApi(api)
    jobsets = partial(custom.list_cluster_custom_object, *JOBSETS, "jobsets")
    leaders = partial(core.list_pod_for_all_namespaces, label_selector=translate.LEADERS)
    hosts = partial(core.list_node, label_selector=translate.HOSTS)
    return (
        Source(Kind.JOBSETS, jobsets, translate.jobset, "uid", f"jobsets of {'/'.join(JOBSETS)}"),
        Source(Kind.LEADERS, leaders, translate.leader, "uid", "pods"),
        Source(Kind.HOSTS, hosts, translate.host, "name", "nodes"),
    )


class Cluster:
    """Single calls. Temporary where the API server cannot be reached or is not well; Permanent where it refuses."""

    def __init__(self, api: client.ApiClient) -> None:
        self._core: Any = client.CoreV1Api(api)  # as above
        self._apps: Any = client.AppsV1Api(api)
        self._custom: Any = client.CustomObjectsApi(api)

    def jobset(self, name: JobSetName) -> Mapping[str, Any] | None:
        """Read a JobSet from the API server itself; None: there is none of that name.

        Only a NotFound that names the JobSet says so: a server that does not know JobSets at all answers 404 too.
        """
        with _classing():
            try:
                read = partial(self._custom.get_namespaced_custom_object, *JOBSETS, name.namespace, "jobsets")
                return _raw(read, name.name, seconds=_SECONDS)
            except ApiException as error:
                if error.status == NOT_FOUND and _names(error, name):
                    return None
                raise

    def claim(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        """Read a PersistentVolumeClaim, quickly or not at all; None: there is none of that name."""
        with _classing():
            return _found(self._core.read_namespaced_persistent_volume_claim, name, namespace)

    def volume(self, name: str) -> Mapping[str, Any] | None:
        """Read a PersistentVolume, as `claim`."""
        with _classing():
            return _found(self._core.read_persistent_volume, name)

    def deployment(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        """Read a Deployment, as `claim`."""
        with _classing():
            return _found(self._apps.read_namespaced_deployment, name, namespace)

    def post(self, event: Mapping[str, Any]) -> None:
        """Create a v1 Event; one of that name that is there already is this very one.

        In a namespace that is gone, or going, there is nobody left to tell.
        """
        with _classing(CONFLICT, unless=_namespace_goes):
            namespace = event["metadata"]["namespace"]
            self._core.create_namespaced_event(
                namespace, client.CoreV1Event.model_validate(event), _request_timeout=_SECONDS, _preload_content=False
            )

    def renew(self, event: Mapping[str, Any]) -> None:
        """Make a v1 Event what it says now, whether there is one of that name or not."""
        namespace, name = event["metadata"]["namespace"], event["metadata"]["name"]
        with _classing(unless=_namespace_goes):
            try:
                self._core.patch_namespaced_event(
                    name,
                    namespace,
                    dict(event),
                    _content_type="application/merge-patch+json",
                    _request_timeout=_SECONDS,
                    _preload_content=False,
                )
            except ApiException as error:
                if error.status != NOT_FOUND:
                    raise
                self.post(event)

    def label_node(self, node: str, patch: Mapping[str, Any]) -> None:
        """Send a JSON merge patch of a Node; that it changed meanwhile, or is gone, the watch of nodes says too."""
        with _classing(NOT_FOUND, CONFLICT):
            self._core.patch_node(
                node,
                dict(patch),
                _content_type="application/merge-patch+json",
                _request_timeout=_SECONDS,
                _preload_content=False,
            )


def _found(read: Callable[..., Response], *names: str) -> Mapping[str, Any] | None:
    try:
        return _raw(read, *names, seconds=_QUICKLY)
    except ApiException as error:
        if error.status == NOT_FOUND:
            return None
        raise


def _raw(read: Callable[..., Response], *names: str, seconds: tuple[float, float]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = orjson.loads(read(*names, _request_timeout=seconds, _preload_content=False).data)
    return found


@contextmanager
def _classing(*as_good: int, unless: Callable[[ApiException], bool] = lambda _: False) -> Iterator[None]:
    """Class what went wrong; refusals of these codes, or of which `unless` says so, are as good as success."""
    try:
        yield
    except ApiException as error:
        if error.status not in as_good and not unless(error):
            raise _classed(error) from error
    except HTTPError as error:
        raise Temporary(f"the API server does not answer: {error}") from error
    except orjson.JSONDecodeError as error:
        raise Temporary(f"the API server's answer cannot be read: {error}") from error


def _namespace_goes(error: ApiException) -> bool:
    """Look whether a metav1.Status says that the namespace is not there, or is being terminated."""
    try:
        status = orjson.loads(error.body or b"")
    except orjson.JSONDecodeError:
        return False
    details = status.get("details") or {} if isinstance(status, dict) else {}
    causes = {cause.get("reason") for cause in details.get("causes") or ()}
    missing = error.status == NOT_FOUND and details.get("kind") == "namespaces"
    return missing or (error.status == FORBIDDEN and "NamespaceTerminating" in causes)


def _names(error: ApiException, name: JobSetName) -> bool:
    """Look whether a metav1.Status of reason NotFound is about this JobSet."""
    try:
        status = orjson.loads(error.body or b"")
    except orjson.JSONDecodeError:
        return False
    details = status.get("details") or {}
    return (status.get("reason"), details.get("kind"), details.get("name")) == ("NotFound", "jobsets", name.name)


def _classed(error: ApiException) -> Temporary | Permanent:
    """Class a refusal: what this very call cannot have will never be had; all else may come right."""
    if error.status in {400, 422}:
        return Permanent(f"the API server refused: {error.status} {error.reason}")
    return Temporary(f"the API server refused: {error.status} {error.reason}")
