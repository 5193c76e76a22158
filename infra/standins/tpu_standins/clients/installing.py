"""What local clients bring to a cluster that lacks it: CRDs, which stay, and webhooks while somebody serves them."""

import base64
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from tpu_standins.certificates import certificates
from tpu_standins.clients.api import Api
from tpu_standins.clients.errors import ApiError, Unreachable
from tpu_standins.clients.kinds import Kind
from tpu_standins.clients.labels import marked
from tpu_standins.clients.serving import HOST, Answer, serving
from tpu_standins.patience import PATIENCE_SECONDS

_log = logging.getLogger(__name__)

Json = dict[str, Any]

ANYTHING: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
"""The schema of a field that the API server does not check."""
_PAUSE_SECONDS = 0.05


class NotInstalled(Exception):
    """The API server does not serve a kind, or does not call a webhook; says why, for the user."""


def crd(kind: Kind, schemas: Mapping[str, Json], columns: Mapping[str, str], *short_names: str) -> Json:
    """Return a kind's CRD. `schemas` are of its fields besides metadata; `columns` are JSON paths by titles."""
    group, _, version = kind.api.partition("/")
    fields = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}} | {
        **schemas
    }
    served = {
        "name": version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": fields}},
        "additionalPrinterColumns": [
            {"name": name, "type": "date" if name == "Age" else "string", "jsonPath": path}
            for name, path in columns.items()
        ],
    }
    parts: Json = {"subresources": {"status": {}}} if "status" in schemas else {}
    spec = {
        "group": group,
        "names": {
            "plural": kind.plural,
            "singular": kind.name.lower(),
            "kind": kind.name,
            "listKind": f"{kind.name}List",
            "shortNames": list(short_names),
        },
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "versions": [served | parts],
    }
    return marked({"metadata": {"name": f"{kind.plural}.{group}"}, "spec": spec})


def webhook(name: str, url: str, authority: bytes, rule: Json, **more: Json) -> Json:
    """Return one of a configuration's webhooks; `authority` is its server's CA certificate, in PEM."""
    return {
        "name": name,
        "clientConfig": {"url": url, "caBundle": base64.b64encode(authority).decode()},
        "rules": [rule],
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "timeoutSeconds": 30,  # the longest that there is: a webhook that is late refuses
        **more,
    }


def rule(kind: Kind, *operations: str) -> Json:
    group, _, version = kind.api.rpartition("/")
    return {"apiGroups": [group], "apiVersions": [version], "resources": [kind.plural], "operations": list(operations)}


def install(api: Api, kind: Kind, definition: Json, *, manager: str, within: float = PATIENCE_SECONDS) -> None:
    """Install a kind's CRD, or bring it up to date, and wait until it is served. Raise ApiError or NotInstalled.

    `within` is in seconds. Kubernetes' controller manager learns of a CRD at once if it starts later, else within
    30 s: until then nothing that such an object owns is deleted with it.
    """
    api.apply("customresourcedefinitions", definition, manager=manager)
    wait(lambda: _serves(api, kind), f"the API server does not serve {kind.plural}", within)


@contextmanager
def answering(
    api: Api, answer: Answer, configurations: Callable[[str, bytes], Mapping[str, Json]], works: Callable[[], bool]
) -> Iterator[None]:
    """Serve webhooks within the block, and have the API server call them. Raise ApiError or NotInstalled.

    `configurations` returns theirs by plural, for their address and their server's CA certificate; `works` whether
    they are called. What is left of a predecessor that was killed is replaced.
    """
    own = certificates(HOST, datetime.now(UTC))
    with serving(0, own.context(), answer) as address:
        wanted = configurations(address, own.authority)
        try:
            for plural, configuration in wanted.items():
                api.apply(plural, configuration, manager=configuration["metadata"]["name"])
            wait(works, f"the API server does not call the webhooks at {address}")
            yield
        finally:
            for plural, configuration in wanted.items():
                _remove(api, plural, configuration["metadata"]["name"])


def _remove(api: Api, plural: str, name: str) -> None:
    """Delete an object, unless it is gone, or there is no server any more that could be kept by it from anything."""
    try:
        api.delete(plural, None, name)
    except Unreachable as silence:
        _log.warning("%s %s is not removed: %s", plural, name, silence)
    except ApiError as error:
        if error.code != 404:
            raise


def tried(api: Api, kind: Kind, obj: Json) -> Json | None:
    """Return what would become of a new object in the namespace default; None if it would be refused (422)."""
    body = {"apiVersion": kind.api, "kind": kind.name} | obj
    try:
        return api.call("POST", kind.path("default"), body, query={"dryRun": "All"})
    except ApiError as error:
        if error.code == 422:
            return None
        raise


def wait(done: Callable[[], bool], problem: str, within: float = PATIENCE_SECONDS) -> None:
    """Wait until it is done. Raise NotInstalled. A server that learns what it serves answers with errors at first."""
    deadline = time.monotonic() + within
    while not _passes(done):
        if time.monotonic() > deadline:
            raise NotInstalled(f"{problem}, although it was asked to {within:g} s ago")
        time.sleep(_PAUSE_SECONDS)


def _passes(done: Callable[[], bool]) -> bool:
    try:
        return done()
    except ApiError as error:
        if error.passes:
            return False
        raise


def _serves(api: Api, kind: Kind) -> bool:
    try:
        api.list(kind.plural, limit="1")
    except ApiError as error:
        if error.code == 404:
            return False
        raise
    return True
