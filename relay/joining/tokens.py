"""Bootstrap tokens with which the hosts of a slice join the cluster: one for all hosts of an attempt, for half an hour.

The relay may create such Secrets and delete its own, and read none: it hands out again what it remembers, and makes
another one after a restart (infra/kubernetes/relay/joining).
"""

from __future__ import annotations

import base64
import secrets
import string
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from tpu_slices.domain.model.joining import TOKEN_LIVES, TOKEN_REUSED, JoinEnded, JoinQuestion, JoinToken
from tpu_slices.domain.model.slices import ClaimId
from tpu_slices.domain.planning.pool_labels import ATTEMPT_LABEL, SLICE_ID_LABEL

TOKEN_TYPE = "bootstrap.kubernetes.io/token"  # noqa: S105 - the type of Secrets
MANAGED_BY = {"app.kubernetes.io/managed-by": "tpu-slice-provisioner"}
GROUP = "system:bootstrappers:kubeadm:default-node-token"
"""The group whose certificates kubeadm's own roles let be signed, and approve (kubeadm, "bootstrap-token" phase)."""
_ALPHABET = string.ascii_lowercase + string.digits
_ID, _SECRET = 6, 16  # characters


class Bootstrap(Protocol):
    """As `relay.cluster.Cluster`, whose errors it raises."""

    def ca_hashes(self) -> tuple[str, ...]: ...

    def create_token(self, secret: Mapping[str, Any]) -> None: ...

    def delete_tokens(self, selector: str) -> None: ...


class Tokens:
    """Makes tokens when asked for them, and removes them; every method may be called by any thread."""

    def __init__(
        self,
        bootstrap: Bootstrap,
        now: Callable[[], datetime],
        choose: Callable[[Sequence[str]], str] = secrets.choice,
    ) -> None:
        self._bootstrap = bootstrap
        self._now = now
        self._choose = choose
        self._made: dict[tuple[ClaimId, int], JoinToken] = {}
        self._lock = threading.Lock()

    def answer(self, question: JoinQuestion) -> tuple[JoinToken, ...]:
        """Return a token that lives for a while, or none for a question that is long past."""
        with self._lock:
            now = self._now()
            self._made = {key: made for key, made in self._made.items() if made.expires_at - now > TOKEN_REUSED}
            if now - question.asked_at > TOKEN_LIVES:
                return ()
            key = (question.slice_id, question.attempt)
            if key not in self._made:
                self._made[key] = self._make(question, now)
            return (self._made[key],)

    def end(self, joined: JoinEnded) -> None:
        """Delete the tokens of an attempt, those that another relay made too."""
        with self._lock:
            self._made.pop((joined.slice_id, joined.attempt), None)
            labels = _labels(joined.slice_id, joined.attempt)
            self._bootstrap.delete_tokens(",".join(f"{key}={value}" for key, value in labels.items()))

    def _make(self, question: JoinQuestion, now: datetime) -> JoinToken:
        hashes = self._bootstrap.ca_hashes()
        token = f"{self._drawn(_ID)}.{self._drawn(_SECRET)}"
        made = JoinToken(
            slice_id=question.slice_id,
            attempt=question.attempt,
            token=token,
            ca_hashes=hashes,
            expires_at=(now + TOKEN_LIVES).replace(microsecond=0),
        )
        self._bootstrap.create_token(secret_of(made))
        return made

    def _drawn(self, characters: int) -> str:
        return "".join(self._choose(_ALPHABET) for _ in range(characters))


def secret_of(made: JoinToken) -> dict[str, Any]:
    """Return the v1 Secret of a token (kubernetes.io, "Authenticating with Bootstrap Tokens")."""
    id_, _, secret = made.token.partition(".")
    data = {
        "token-id": id_,
        "token-secret": secret,
        "expiration": f"{made.expires_at:%Y-%m-%dT%H:%M:%SZ}",
        "usage-bootstrap-authentication": "true",
        "usage-bootstrap-signing": "true",
        "auth-extra-groups": GROUP,
        "description": f"Hosts of slice {made.slice_id}, attempt {made.attempt}, join with it.",
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": f"bootstrap-token-{id_}", "labels": _labels(made.slice_id, made.attempt)},
        "type": TOKEN_TYPE,
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in data.items()},
    }


def _labels(slice_id: ClaimId, attempt: int) -> dict[str, str]:
    return {**MANAGED_BY, SLICE_ID_LABEL: slice_id, ATTEMPT_LABEL: str(attempt)}
