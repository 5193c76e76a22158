"""Questions to the API server, by which its programs are known to be ready."""

import http.client
import ssl
from collections.abc import Callable
from dataclasses import dataclass

from tpu_standins.kubernetes.credentials import User
from tpu_standins.kubernetes.layout import HOST, Layout
from tpu_standins.patience import ATTEMPT_SECONDS

DEFAULT_ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    body: str


def ask(layout: Layout, user: User, path: str, body: str | None = None) -> Reply | None:
    """GET a path as this user, or POST the body, as JSON. Return None if nobody with our certificate answers."""
    trust = ssl.create_default_context(cafile=layout.authority)
    connection = http.client.HTTPSConnection(HOST, layout.secure_port, timeout=ATTEMPT_SECONDS, context=trust)
    try:
        headers = {"Authorization": f"Bearer {user.token}", "Content-Type": "application/json"}
        connection.request("GET" if body is None else "POST", path, body, headers)
        reply = connection.getresponse()
        return Reply(reply.status, reply.read().decode(errors="replace"))
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def serves(layout: Layout, user: User) -> Callable[[], bool]:
    """Return the question whether the API server is ready. A part that is not has its `ok` in the body too."""
    return lambda: ask(layout, user, "/readyz") == Reply(200, "ok")


def controls(layout: Layout, user: User) -> Callable[[], bool]:
    """Return the question whether controllers work: without the account that one of them makes, no pod is admitted."""

    def made() -> bool:
        reply = ask(layout, user, DEFAULT_ACCOUNT)
        return reply is not None and reply.status == http.client.OK

    return made
