"""Asks Google's REST APIs and the API servers of clusters. Nothing is decided here."""

import base64
import json
import tempfile
from collections.abc import Mapping
from typing import Any

import google.auth
from google.auth.exceptions import GoogleAuthError
from google.auth.transport.requests import AuthorizedSession

from infra.preflight.answers import Answer, Denied, Found, Missing, Unreachable
from infra.preflight.gke import Endpoint

SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
TIMEOUT = 20.0
_OK, _UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND = 200, 401, 403, 404


class NoCredentials(Exception):
    """Nobody is logged in. The message says how to."""


class Api:
    """Google's APIs, each at `https://SERVICE.googleapis.com`, and API servers.

    `hosts` has other addresses: by the name of a service, or by the URL of an API server.
    """

    def __init__(self, session: Any, hosts: Mapping[str, str] | None = None) -> None:
        self._session = session
        self._hosts = hosts or {}

    def get(self, service: str, path: str, **query: Any) -> Answer:
        return self._ask("GET", self._url(service, path), params=query)

    def post(self, service: str, path: str, body: Mapping[str, Any]) -> Answer:
        return self._ask("POST", self._url(service, path), json=body)

    def kubernetes(self, endpoint: Endpoint, path: str) -> Answer:
        url = self._hosts.get(endpoint.url, endpoint.url) + path
        if endpoint.authority is None:
            return self._ask("GET", url)
        with tempfile.NamedTemporaryFile(suffix=".pem") as trusted:
            trusted.write(base64.b64decode(endpoint.authority))
            trusted.flush()
            return self._ask("GET", url, verify=trusted.name)

    def _url(self, service: str, path: str) -> str:
        return f"{self._hosts.get(service, f'https://{service}.googleapis.com')}/{path}"

    def _ask(self, method: str, url: str, **more: Any) -> Answer:
        try:
            response = self._session.request(method, url, timeout=TIMEOUT, **more)
            body = response.json() if response.content else {}
        except (OSError, GoogleAuthError, json.JSONDecodeError) as failed:  # requests' errors are OSErrors
            return Unreachable(f"{url}: {failed}")
        match response.status_code:
            case code if code == _OK:
                return Found(body)
            case code if code == _NOT_FOUND:
                return Missing()
            case code if code in {_UNAUTHORIZED, _FORBIDDEN}:
                return Denied(_message(body))
            case code:
                return Unreachable(f"{url}: {code} {_message(body)}")


def _message(body: Any) -> str:
    """Return the text of an error, as Google's APIs or Kubernetes' write it."""
    error = body.get("error", body) if isinstance(body, Mapping) else body
    return str(error.get("message", error) if isinstance(error, Mapping) else error)


def connect() -> Api:
    """Return the APIs, asked with the credentials of this environment. Raises NoCredentials."""
    try:
        credentials, _ = google.auth.default(scopes=SCOPES)
    except GoogleAuthError as error:
        raise NoCredentials("nobody is logged in: gcloud auth application-default login") from error
    return Api(AuthorizedSession(credentials))  # type: ignore[no-untyped-call]
