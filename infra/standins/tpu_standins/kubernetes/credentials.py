"""What the programs and their clients authenticate with: certificates, the key of service accounts, tokens."""

import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tpu_standins.certificates import certificates
from tpu_standins.kubeconfig import write_private
from tpu_standins.kubernetes.layout import HOST, Layout


def _token() -> str:
    return secrets.token_hex(24)


@dataclass(frozen=True, slots=True)
class User:
    """A user of the API server, who is known by a token."""

    name: str
    groups: tuple[str, ...] = ()
    token: str = field(default_factory=_token, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounts:
    """The administrator, the two programs whose roles every API server has from its start, and further users."""

    admin: User = field(default_factory=lambda: User("admin", ("system:masters",)))
    controller_manager: User = field(default_factory=lambda: User("system:kube-controller-manager"))
    scheduler: User = field(default_factory=lambda: User("system:kube-scheduler"))
    others: tuple[User, ...] = ()

    def all(self) -> tuple[User, ...]:
        return (self.admin, self.controller_manager, self.scheduler, *self.others)


def token_file(users: tuple[User, ...]) -> str:
    """Return the content of a static token file: token, name, UID and, in quotes, the groups."""
    return "".join(f'{each.token},"{each.name}","{each.name}","{",".join(each.groups)}"\n' for each in users)


def write(layout: Layout, accounts: Accounts) -> None:
    """Write all secrets into the folder, readable by their owner only."""
    pem = serialization.Encoding.PEM
    key = ec.generate_private_key(ec.SECP256R1())
    private = key.private_bytes(pem, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption())
    public = key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
    certified = certificates(HOST, datetime.now(UTC))
    for path, content in (
        (layout.authority, certified.authority),
        (layout.certificate, certified.server),
        (layout.key, certified.key),
        (layout.accounts_key, private),
        (layout.accounts_public_key, public),
    ):
        write_private(path, content.decode())
    write_private(layout.tokens, token_file(accounts.all()))
