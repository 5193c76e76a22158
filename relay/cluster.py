"""The API server through the official client: what is watched, what is asked, what is written (Events alone)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import Any

import orjson
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from relay import translate
from relay.seen import JobSetName, Kind
from relay.watch import Response, Source
from shared.ports import Permanent, Temporary

JOBSETS = ("jobset.x-k8s.io", "v1alpha2")
_SECONDS = (5.0, 10.0)  # to connect, to answer


def connect(environment: Mapping[str, str] = os.environ) -> client.ApiClient:
    """Open the client: by KUBECONFIG where it is set, else by the pod's own service account."""
    settings = client.Configuration()
    load: Any = config  # its functions have no annotations
    if path := environment.get("KUBECONFIG"):
        load.load_kube_config(config_file=path, client_configuration=settings)
    else:
        load.load_incluster_config(client_configuration=settings)
    return client.ApiClient(settings)


def sources(api: client.ApiClient) -> tuple[Source, ...]:
    """Name what is watched; of pods only leaders and of nodes only ours come over the line."""
    core: Any = client.CoreV1Api(api)  # annotated for typed answers; all is read raw here
    custom: Any = client.CustomObjectsApi(api)
    jobsets = partial(custom.list_cluster_custom_object, *JOBSETS, "jobsets")
    leaders = partial(core.list_pod_for_all_namespaces, label_selector=translate.LEADERS)
    hosts = partial(core.list_node, label_selector=translate.HOSTS)
    return (
        Source(Kind.JOBSETS, jobsets, translate.jobset, "uid"),
        Source(Kind.LEADERS, leaders, translate.leader, "uid"),
        Source(Kind.HOSTS, hosts, translate.host, "name"),
    )


class Cluster:
    """Single calls. Temporary where the API server cannot be reached or is not well; Permanent where it refuses."""

    def __init__(self, api: client.ApiClient) -> None:
        self._core: Any = client.CoreV1Api(api)  # as above
        self._custom: Any = client.CustomObjectsApi(api)

    def jobset(self, name: JobSetName) -> Mapping[str, Any] | None:
        """Read a JobSet from the API server itself; None: there is none of that name.

        Only a NotFound that names the JobSet says so: a server that does not know JobSets at all answers 404 too.
        """
        try:
            response: Response = self._custom.get_namespaced_custom_object(
                *JOBSETS, name.namespace, "jobsets", name.name, _request_timeout=_SECONDS, _preload_content=False
            )
            found: Mapping[str, Any] = orjson.loads(response.data)
        except ApiException as error:
            if error.status == 404 and _names(error, name):
                return None
            raise _classed(error) from error
        except HTTPError as error:
            raise Temporary(f"the API server does not answer: {error}") from error
        return found

    def post(self, event: Mapping[str, Any]) -> None:
        """Create a v1 Event; one of that name that is there already is this very one."""
        try:
            namespace = event["metadata"]["namespace"]
            self._core.create_namespaced_event(
                namespace, client.CoreV1Event.model_validate(event), _request_timeout=_SECONDS, _preload_content=False
            )
        except ApiException as error:
            if error.status != 409:
                raise _classed(error) from error
        except HTTPError as error:
            raise Temporary(f"the API server does not answer: {error}") from error


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
