"""The official client: how it is configured and authenticated, what an API server's refusals mean, and when to retry.

Credentials that are rejected are reloaded.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from functools import partial
from http.client import responses
from typing import Any

import orjson
import structlog
from kubernetes import client, config
from kubernetes.client import rest
from kubernetes.client.exceptions import ApiException
from urllib3 import Retry
from urllib3.exceptions import MaxRetryError, SSLError

from relay.agenda import LONGEST_PAUSE
from tpu_slices.ports.log_events import LogEvent

_log = structlog.get_logger()

LONGEST_WORDS = 500
"""The most characters of the server's own message, which may quote what a tenant wrote."""
GONE = 410
NOT_FOUND = 404
UNAUTHORIZED = 401
_RETRIES = Retry(total=1, status=0, respect_retry_after_header=False)
"""Once for a connection that the server closed meanwhile. Responses are not retried here, whatever their Retry-After:
the client would sleep for as long as it says, and could not be stopped."""


def connect(environment: Mapping[str, str] = os.environ) -> client.ApiClient:
    """Return a client, configured by KUBECONFIG if that is set, else by the pod's own service account.

    Raises ConfigException if there is neither.
    """
    return Connection(environment)


class Connection(client.ApiClient):
    """An ApiClient that reloads its credentials when the API server rejects them, or its certificate is not trusted.

    It then repeats the call once. Tokens and certificates in files are rotated while the relay runs: the official
    client reloads a pod's own token each minute by the system clock, and never the files that a kubeconfig names.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        super().__init__(_configuration(environment))
        self._environment = environment
        self._reading = threading.Lock()

    def call_api(
        self,
        method: str,
        url: str,
        header_params: dict[str, str] | None = None,
        body: Any = None,
        post_params: Any = None,
        _request_timeout: Any = None,
    ) -> Any:
        headers = dict(header_params or {})
        ask = partial(super().call_api, body=body, post_params=post_params, _request_timeout=_request_timeout)
        try:
            response: Any = ask(method, url, dict(headers))
        except (ApiException, MaxRetryError) as error:
            if not _is_untrusted(error) or not self._renew():
                raise
        else:
            if response.status != UNAUTHORIZED or not self._renew():
                return response
            response.read()  # returns the connection to the pool
        known = self.configuration.auth_settings().get("BearerToken")
        return ask(method, url, headers | ({known["key"]: known["value"]} if known else {}))

    def _renew(self) -> bool:
        """Reload the credentials; return whether that succeeded."""
        with self._reading:
            try:
                settings = _configuration(self._environment)
            except Exception as wrong:  # noqa: BLE001 - a half-written file may raise anything; the next one is whole
                _log.warning(LogEvent.CREDENTIALS_RELOAD_FAILED, error=str(wrong))
                return False
            self.rest_client = rest.RESTClientObject(settings)
            self.configuration = settings
        return True


def _is_untrusted(error: ApiException | MaxRetryError) -> bool:
    """Return whether the server's certificate or the client's was refused; the client reports that in two ways."""
    return isinstance(error.reason, SSLError) or "SSLError" in str(error.reason)


def _configuration(environment: Mapping[str, str]) -> client.Configuration:
    settings = client.Configuration(retries=_RETRIES)
    load: Any = config  # its functions have no annotations
    if path := environment.get("KUBECONFIG"):
        load.load_kube_config(config_file=path, client_configuration=settings)
    else:
        load.load_incluster_config(client_configuration=settings)
    return settings


def asked_pause(error: Exception) -> float:
    """Return the seconds of a refusal's Retry-After, 0 if it has none; never more than LONGEST_PAUSE."""
    headers = error.headers if isinstance(error, ApiException) else None
    asked = str((headers or {}).get("Retry-After", "")).strip()
    return min(LONGEST_PAUSE, float(asked[:9])) if asked.isascii() and asked.isdigit() else 0.0


def in_words(error: Exception, what: str) -> str:
    """Return in one line what went wrong with a list or watch of `what`."""
    if not isinstance(error, ApiException):
        return " ".join(f"{type(error).__name__}: {error}".split())[:LONGEST_WORDS]
    known = responses.get(error.status or 0, "")
    text = f"{error.status} {_message(error) or error.reason or known}"
    if error.status == NOT_FOUND:
        text = f"the API server does not serve {what}: {text}"
    return " ".join(text.split())[:LONGEST_WORDS]


def _message(error: ApiException) -> str:
    """Return the message of a metav1.Status; empty for other bodies, as of a proxy or an unknown path."""
    try:
        status = orjson.loads(error.body or b"")
    except orjson.JSONDecodeError:
        return ""
    return str(status.get("message") or "") if isinstance(status, dict) else ""
