"""The official client: how it is configured, how it authenticates, and what it does when it is no longer known."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from functools import partial
from typing import Any

import structlog
from kubernetes import client, config
from kubernetes.client import rest
from kubernetes.client.exceptions import ApiException
from urllib3 import Retry
from urllib3.exceptions import MaxRetryError, SSLError

from relay.refusals import UNAUTHORIZED
from tpu_slices.ports.log_events import LogEvent

_log = structlog.get_logger()

_RETRIES = Retry(total=1, status=0, respect_retry_after_header=False)
"""Of a connection that the server closed meanwhile. What it answers, however it asks us to wait, is ours to judge: the
client would sleep for as long as the answer says, deaf to everything."""


def connect(environment: Mapping[str, str] = os.environ) -> client.ApiClient:
    """Open the client: by KUBECONFIG where it is set, else by the pod's own service account.

    ConfigException where there is neither.
    """
    return Connection(environment)


class Connection(client.ApiClient):
    """An ApiClient that reads its credentials again when the API server knows them no more, or is not known any more.

    It then asks once more. Tokens and certificates in files are exchanged while we run: the official client reads a
    pod's own token again each minute by the wall's clock, and what a kubeconfig names not at all.
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
            response.read()  # gives the connection back
        known = self.configuration.auth_settings().get("BearerToken")
        return ask(method, url, headers | ({known["key"]: known["value"]} if known else {}))

    def _renew(self) -> bool:
        """Read the credentials again; False where that cannot be done."""
        with self._reading:
            try:
                settings = _configuration(self._environment)
            except Exception as wrong:  # noqa: BLE001 - whatever a file half written leads to: it will be whole
                _log.warning(LogEvent.CREDENTIALS_RELOAD_FAILED, error=str(wrong))
                return False
            self.rest_client = rest.RESTClientObject(settings)
            self.configuration = settings
        return True


def _is_untrusted(error: ApiException | MaxRetryError) -> bool:
    """Say whether the server's certificate, or ours, was refused; the client hides that in two ways."""
    return isinstance(error.reason, SSLError) or "SSLError" in str(error.reason)


def _configuration(environment: Mapping[str, str]) -> client.Configuration:
    settings = client.Configuration(retries=_RETRIES)
    load: Any = config  # its functions have no annotations
    if path := environment.get("KUBECONFIG"):
        load.load_kube_config(config_file=path, client_configuration=settings)
    else:
        load.load_incluster_config(client_configuration=settings)
    return settings
