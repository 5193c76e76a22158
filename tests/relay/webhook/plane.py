"""An API server as the webhook's certificates see it, with memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from cryptography import x509

from relay.webhook.certificates import Kept
from tpu_slices.ports.errors import Temporary


@dataclass
class Plane:
    """One Secret, and the configuration by which it calls the webhook; `bundle` is None before that is applied."""

    entries: Mapping[str, bytes] = field(default_factory=dict)
    version: int = 1
    bundle: bytes | None = b""
    is_away: bool = False
    written: int = 0

    def kept(self) -> Kept:
        self._reached()
        return Kept(self.entries, str(self.version))

    def keep(self, entries: Mapping[str, bytes], before: Kept) -> None:
        self._reached()
        if before.version != str(self.version):
            raise Temporary("the API server refused: 409 Conflict")
        self.entries, self.version = dict(entries), self.version + 1
        self.written += 1

    def trusted(self) -> bytes | None:
        self._reached()
        return self.bundle

    def trust(self, bundle: bytes) -> None:
        self._reached()
        self.bundle = bundle
        self.written += 1

    def _reached(self) -> None:
        if self.is_away:
            raise Temporary("the API server does not answer")


def authorities_in(bundle: bytes | None) -> list[x509.Certificate]:
    return x509.load_pem_x509_certificates(bundle) if bundle else []


def days(number: float) -> timedelta:
    return timedelta(days=number)


def is_valid(certificate: x509.Certificate, now: datetime) -> bool:
    return certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc
