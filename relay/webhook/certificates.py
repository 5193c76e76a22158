"""Keeps the webhook's certificate valid, and the API server's trust in it."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from tempfile import NamedTemporaryFile
from typing import Protocol

import structlog

from relay.webhook.authorities import LIFE, Identity, bundle_of, identity_of, kept_up, read, signer_of, stored
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.log_events import LogEvent

_log = structlog.get_logger()

PAUSE, SHORT_PAUSE = timedelta(seconds=5), timedelta(seconds=1)
"""Between two looks: the short one as long as the API server does not trust what it should, as it is about to call the
webhook. No pause is longer than a sixtieth of an authority's life: what is made has to be trusted in time."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What the Secret has: by entry, and as of which resourceVersion."""

    entries: Mapping[str, bytes]
    version: str


class Calls(Protocol):
    """Each call raises Temporary or Permanent; `keep` raises Temporary if another replica was faster."""

    def kept(self) -> Kept: ...

    def keep(self, entries: Mapping[str, bytes], before: Kept) -> None:
        """Replace the entries of the Secret."""

    def trusted(self) -> bytes | None:
        """Return the authorities that the API server trusts, in PEM; None: it does not call the webhook yet."""

    def trust(self, bundle: bytes) -> None: ...


class Certificates:
    """Each replica makes `step` again and again: the first one renews the authorities, and the others use them."""

    def __init__(
        self,
        calls: Calls,
        names: Sequence[str],
        now: Callable[[], datetime],
        context: ssl.SSLContext,
        life: timedelta = LIFE,
    ) -> None:
        self._calls = calls
        self._names = names
        self._now = now
        self._context = context
        self._life = life
        self.identity: Identity | None = None
        """What it serves with; None: nothing yet."""
        self._over = threading.Event()
        self.usable = threading.Event()
        """Set once there is a certificate to serve with."""

    def run(self) -> None:
        """Renew until `stop`."""
        while not self._over.is_set():
            pause = PAUSE
            try:
                pause = PAUSE if self.step() else SHORT_PAUSE
            except (Temporary, Permanent) as error:
                _log.warning(LogEvent.CERTIFICATE_FAILED, error=str(error))
            self._over.wait(min(pause, self._life / 60).total_seconds())

    def stop(self) -> None:
        self._over.set()

    def step(self) -> bool:
        """Renew the authorities, have the API server trust them, and serve with the one that is due.

        They are trusted before one of them signs. Return whether they were trusted already. Raise Temporary, Permanent.
        """
        now, before = self._now(), self._calls.kept()
        authorities = kept_up(read(before.entries), now, self._life)
        if (entries := stored(authorities)) != dict(before.entries):
            self._calls.keep(entries, before)
        bundle, trusted = bundle_of(authorities), self._calls.trusted()
        if trusted not in (None, bundle):
            self._calls.trust(bundle)
        signer = signer_of(authorities, now)
        if self.identity is None or self.identity.signer.certificate != signer.certificate:
            self._serve(identity_of(signer, self._names))
        return trusted == bundle

    def _serve(self, identity: Identity) -> None:
        """Use an identity for connections from now on."""
        load(self._context, identity.chain)
        self.identity = identity
        _log.info(LogEvent.CERTIFICATE_RENEWED, until=identity.signer.ends_at.isoformat())
        self.usable.set()


def load(context: ssl.SSLContext, chain: bytes) -> None:
    """Have a server use a certificate with its key, in PEM, from now on: ssl reads them from a file only."""
    with NamedTemporaryFile() as file:  # only its owner may read it
        file.write(chain)
        file.flush()
        context.load_cert_chain(file.name)
