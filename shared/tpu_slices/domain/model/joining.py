"""How hosts of a self-managed cluster join it: what is asked of the relay for them, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tpu_slices.domain.model.slices import ClaimId

TOKEN_LIVES = timedelta(minutes=30)
TOKEN_REUSED = timedelta(minutes=10)
"""A token that lives longer than this is handed out again."""


@dataclass(frozen=True, slots=True)
class Kubeadm:
    """What hosts join with."""

    kubernetes: str
    """The minor version of their kubelet and kubeadm, as in `1.36`."""
    control_plane: str
    """`HOST:PORT`; without a port it is 6443."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinAsked:
    """The latest question for a bootstrap token, for an attempt whose hosts are missing."""

    attempt: int
    at: datetime
    handed_on_at: datetime | None = None
    """When the hosts were given a token that answers it; None: not yet."""
    failure: str = ""
    """Why they could not be given it; empty: they were, or it has not come yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinQuestion:
    """A question to the relay: a bootstrap token with which the hosts of a pool join."""

    slice_id: ClaimId
    attempt: int
    asked_at: datetime
    """One that comes when no token would live any more is not answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinEnded:
    """A word to the relay: the hosts of a pool have joined, or never will; its bootstrap tokens are to be removed."""

    slice_id: ClaimId
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinToken:
    """A bootstrap token of Kubernetes, for the hosts of one pool. It is handed on, and neither kept nor logged."""

    slice_id: ClaimId
    attempt: int
    token: str = field(repr=False)
    ca_hashes: tuple[str, ...]
    """`sha256:…` of the public key of each certificate authority that the API server may be proven by."""
    expires_at: datetime
