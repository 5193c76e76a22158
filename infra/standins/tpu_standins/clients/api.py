"""Calls to an API server through the official client's connection; bodies and answers are plain JSON."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import orjson
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from urllib3 import Retry
from urllib3.exceptions import HTTPError

from tpu_standins.clients.errors import ApiError, Unreachable, refusal
from tpu_standins.clients.kinds import KINDS
from tpu_standins.clients.objects import Object
from tpu_standins.patience import ATTEMPT_SECONDS, PATIENCE_SECONDS

MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
NOT_FOUND = 404

_JSON = "application/json"
_TIMEOUTS = (ATTEMPT_SECONDS, PATIENCE_SECONDS)  # to connect, and to answer
_RETRIES = Retry(total=1, status=0, respect_retry_after_header=False)
"""Once for a connection that the server closed meanwhile; answers are not retried, whatever their Retry-After."""
_CONNECTIONS = 32


class Stream(Protocol):
    """As urllib3.HTTPResponse, with its content not read yet."""

    status: int

    def read1(self, amt: int | None = None) -> bytes: ...

    def shutdown(self) -> None: ...

    def close(self) -> None: ...


def connected(kubeconfig: Path, *, context: str | None = None) -> client.ApiClient:
    """Return a client of the kubeconfig's cluster. Proxies of the environment are ignored: the server is local.

    Raises kubernetes' ConfigException.
    """
    settings = client.Configuration(retries=_RETRIES)
    load: Any = config.load_kube_config  # has no annotations
    load(config_file=str(kubeconfig), context=context, client_configuration=settings, persist_config=False)
    settings.proxy = ""
    settings.connection_pool_maxsize = _CONNECTIONS
    return client.ApiClient(settings)


class Api:
    """Single calls; all raise ApiError. It may be used from several threads."""

    def __init__(self, connection: client.ApiClient) -> None:
        self._connection = connection

    @classmethod
    def of(cls, kubeconfig: Path) -> "Api":
        """Return the calls with which this kubeconfig's user reaches its cluster."""
        return cls(connected(kubeconfig))

    def serves(self, plural: str) -> bool:
        """Return whether the API server has a kind."""
        try:
            there = self.call("GET", KINDS[plural].root)["resources"]
        except ApiError as error:
            if error.code == NOT_FOUND:
                return False
            raise
        return any(each["name"] == plural for each in there)

    def get(self, plural: str, namespace: str | None, name: str) -> Object:
        return self.call("GET", KINDS[plural].path(namespace, name))

    def list(self, plural: str, namespace: str | None = None, **query: str) -> Object:
        """Return the List of a kind; `query` has selectors, by their names in URLs."""
        return self.call("GET", KINDS[plural].path(namespace), query=query)

    def create(self, plural: str, obj: Object) -> Object:
        kind = KINDS[plural]
        body = {"apiVersion": kind.api, "kind": kind.name} | obj
        namespace = obj["metadata"].get("namespace", "default") if kind.namespaced else None
        return self.call("POST", kind.path(namespace), body)

    def update(self, plural: str, obj: Object, *, status: bool = False) -> Object:
        kind, metadata = KINDS[plural], obj["metadata"]
        body = {"apiVersion": kind.api, "kind": kind.name} | obj
        part = "status" if status else ""
        return self.call("PUT", kind.path(metadata.get("namespace"), metadata["name"], part), body)

    def patch(self, plural: str, namespace: str | None, name: str, change: Object, *, status: bool = False) -> Object:
        """Apply a JSON merge patch."""
        path = KINDS[plural].path(namespace, name, "status" if status else "")
        return self.call("PATCH", path, change, media_type=MERGE)

    def apply(self, plural: str, obj: Object, *, manager: str) -> Object:
        """Create the object, or set the fields that it has: server-side apply, by force."""
        kind, metadata = KINDS[plural], obj["metadata"]
        body = {"apiVersion": kind.api, "kind": kind.name} | obj
        path = kind.path(metadata.get("namespace"), metadata["name"])
        return self.call("PATCH", path, body, query={"fieldManager": manager, "force": "true"}, media_type=APPLY)

    def delete(
        self,
        plural: str,
        namespace: str | None,
        name: str,
        *,
        grace_seconds: int | None = None,
        propagation: str = "Background",
    ) -> Object:
        """Return the object as it is then, or a metav1.Status. See `Objects.delete`."""
        options: Object = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        return self.call("DELETE", KINDS[plural].path(namespace, name), options)

    def call(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        *,
        query: Mapping[str, str] | None = None,
        media_type: str = _JSON,
    ) -> Object:
        """Send a request to a path and return the answer, a JSON object."""
        with _refusals():
            response = self._send(method, path, body, query or {}, (media_type, _TIMEOUTS))
            data = response.read()
            if not 200 <= response.status < 300:
                raise refusal(response.status, data)
            found: Object = orjson.loads(data)
        return found

    def stream(self, path: str, query: Mapping[str, str], silence: float) -> Stream:
        """Begin to read what a path goes on to say. Reads raise urllib3's HTTPError after so many silent seconds."""
        with _refusals():
            response = self._send("GET", path, None, query, (_JSON, (_TIMEOUTS[0], silence)))
            if response.status != 200:
                raise refusal(response.status, response.read())
        opened: Stream = response.response
        return opened

    def close(self) -> None:
        connection: Any = self._connection  # has no annotations
        connection.close()
        connection.rest_client.pool_manager.clear()  # else a server waits for its connections to end

    def _send(
        self,
        method: str,
        path: str,
        body: Object | None,
        query: Mapping[str, str],
        how: tuple[str, tuple[float, float]],
    ) -> Any:
        media_type, timeouts = how
        headers = {"Accept": _JSON, "Content-Type": media_type}
        request = self._connection.param_serialize(
            method,
            path,
            query_params=list(query.items()),
            header_params=headers,
            body=body,
            auth_settings=["BearerToken"],
        )
        return self._connection.call_api(*request, _request_timeout=timeouts)


@contextmanager
def _refusals() -> Iterator[None]:
    """Raise what the client raises when there is no answer, or no JSON, as Unreachable."""
    try:
        yield
    except ApiException as error:
        raise Unreachable(str(error.reason)) from error
    except (HTTPError, OSError) as error:
        raise Unreachable(str(error)) from error
    except orjson.JSONDecodeError as error:
        raise Unreachable(f"its answer is not JSON: {error}") from error
