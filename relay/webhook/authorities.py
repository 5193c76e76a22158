"""The certificate authorities that prove the webhook to the API server: kept in one Secret, renewed in time. Pure.

The API server trusts all of them that have not expired. The webhook's own certificate is signed by one that was made
long enough ago that each API server knows it.

| the newest authority                   | what is done                                                     |
|----------------------------------------|------------------------------------------------------------------|
| there is none                          | one is made, and signs at once: there is nothing better          |
| older than RENEWED of its life         | one is made, and signs once it is older than SETTLED of its life |
| any other                              | nothing                                                          |

One that has expired is forgotten. So is what cannot be read, or signs nothing: the Secret was edited. Where none is
left, a replica that has one goes on with it for seconds, in which the API server may not trust it any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

NAME = "tpu-slice-provisioner webhook"
LIFE = timedelta(days=360)
"""How long an authority is trusted."""
RENEWED = 2 / 3
SETTLED = 1 / 12
SLACK = timedelta(hours=1)
"""How much earlier than it is made a certificate is valid: clocks differ."""
CERTIFICATE, KEY = ".crt", ".key"
_PEM = serialization.Encoding.PEM


@dataclass(frozen=True, slots=True)
class Authority:
    """A CA certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def make(cls, now: datetime, life: timedelta = LIFE) -> Authority:
        """Return a new one."""
        key, name = ec.generate_private_key(ec.SECP256R1()), _named(NAME)
        certificate = (
            _begun(name, name, key, (now, now + life))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        return cls(certificate, key)

    @property
    def made_at(self) -> datetime:
        return self.certificate.not_valid_before_utc + SLACK

    @property
    def ends_at(self) -> datetime:
        return self.certificate.not_valid_after_utc

    def used(self, now: datetime) -> float:
        """Return the share of its life that is over."""
        return (now - self.made_at) / (self.ends_at - self.made_at)


@dataclass(frozen=True, slots=True)
class Identity:
    """What the webhook serves with: its certificate and the key, in PEM, and the authority that signed it."""

    chain: bytes
    signer: Authority


def kept_up(authorities: Sequence[Authority], now: datetime, life: timedelta = LIFE) -> tuple[Authority, ...]:
    """Return the authorities that there should be, the oldest first: the same ones if nothing is to be done."""
    valid = sorted((each for each in authorities if each.ends_at > now), key=lambda each: each.made_at)
    if not valid or valid[-1].used(now) > RENEWED:
        valid.append(Authority.make(now, life))
    return tuple(valid)


def signer_of(authorities: Sequence[Authority], now: datetime) -> Authority:
    """Return the newest of these authorities that each API server knows; `kept_up` returns them."""
    settled = [each for each in authorities if each.used(now) > SETTLED]
    return settled[-1] if settled else authorities[0]


def bundle_of(authorities: Sequence[Authority]) -> bytes:
    """Return what the API server is to trust, in PEM."""
    return b"".join(each.certificate.public_bytes(_PEM) for each in authorities)


def identity_of(signer: Authority, names: Sequence[str]) -> Identity:
    """Return an identity for these names and IP addresses, that is valid as long as its signer."""
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        _begun(_named(names[0]), signer.certificate.subject, key, (signer.made_at, signer.ends_at))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.key.public_key()), critical=False)
        .add_extension(x509.SubjectAlternativeName([_general(each) for each in names]), critical=False)
        .sign(signer.key, hashes.SHA256())
    )
    return Identity(certificate.public_bytes(_PEM) + _in_pem(key), signer)


def stored(authorities: Sequence[Authority]) -> dict[str, bytes]:
    """Return the entries of the Secret: `TIME.crt` and `TIME.key` for each."""
    entries: dict[str, bytes] = {}
    for each in authorities:
        name = f"{each.made_at:%Y%m%dT%H%M%SZ}"
        entries |= {f"{name}{CERTIFICATE}": each.certificate.public_bytes(_PEM), f"{name}{KEY}": _in_pem(each.key)}
    return entries


def read(entries: Mapping[str, bytes]) -> tuple[Authority, ...]:
    """Return the authorities of these entries, but for what cannot be read."""
    return tuple(_read(entries))


def _read(entries: Mapping[str, bytes]) -> Iterator[Authority]:
    for name in sorted(entries):
        if name.endswith(CERTIFICATE):
            try:
                certificate = x509.load_pem_x509_certificate(entries[name])
                key = serialization.load_pem_private_key(entries[name.removesuffix(CERTIFICATE) + KEY], None)
            except (KeyError, ValueError, TypeError):
                continue
            if isinstance(key, ec.EllipticCurvePrivateKey) and _signs(certificate, key):
                yield Authority(certificate, key)


def _signs(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> bool:
    """Return whether a certificate is an authority's own, and the key is that of it."""
    try:
        is_authority = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return False
    of_its_own = certificate.issuer == certificate.subject
    return is_authority and of_its_own and key.public_key() == certificate.public_key()


def _begun(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, valid: tuple[datetime, datetime]
) -> x509.CertificateBuilder:
    begin, end = valid
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin - SLACK)
        .not_valid_after(end)
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _in_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )
