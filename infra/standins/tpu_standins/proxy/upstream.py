"""The API server of a kubeconfig, and the credentials of its user."""

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kubernetes

_client: Any = kubernetes.client  # untyped, although the package claims to be typed
_config: Any = kubernetes.config


@dataclass(frozen=True, slots=True)
class Upstream:
    """`settings` is the official client's configuration, which keeps tokens fresh."""

    settings: Any

    @property
    def address(self) -> str:
        return str(self.settings.host).rstrip("/")

    @property
    def server_name(self) -> str | None:
        name: str | None = self.settings.tls_server_name
        return name

    def authorization(self) -> str | None:
        """Return the Authorization header of the kubeconfig's user, if it authenticates by one."""
        known = self.settings.auth_settings().get("BearerToken")
        return str(known["value"]) if known else None

    def trust(self, *, as_user: bool) -> ssl.SSLContext:
        """Return how its certificate is checked; `as_user`: and the user's client certificate shown, if there is one.

        A request with other credentials than the user's must not carry the user's certificate: that would decide.
        """
        context = ssl.create_default_context(cafile=self.settings.ssl_ca_cert)
        if not self.settings.verify_ssl:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if as_user and self.settings.cert_file:
            context.load_cert_chain(self.settings.cert_file, self.settings.key_file)
        return context


def of_kubeconfig(path: Path) -> Upstream:
    """Return the API server of the current context. Raises the official client's ConfigException."""
    settings = _client.Configuration()
    _config.load_kube_config(config_file=str(path), client_configuration=settings, persist_config=False)
    return Upstream(settings)
