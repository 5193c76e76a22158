"""Certificates of local servers, each signed by a CA that is created for it."""

import ipaddress
import ssl
import tempfile
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALID = timedelta(days=365)
_SLACK = timedelta(minutes=5)  # for clock skew between server and client
_Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates:
    """In PEM: the CA certificate that clients trust, and the server's certificate with its key."""

    authority: bytes
    server: bytes
    key: bytes
    authority_key: bytes = b""
    """Empty: it was discarded."""

    def context(self) -> ssl.SSLContext:
        """Return the server's TLS context; ssl reads certificates only from files."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.TemporaryDirectory() as folder:
            chain = Path(folder) / "server.pem"
            chain.touch(mode=0o600)
            chain.write_bytes(self.server + self.key)
            context.load_cert_chain(chain)
        return context


def certificates(host: str, now: datetime) -> Certificates:
    """Create a CA, and a certificate for the IP address `host` that is valid for a year. The CA's key is discarded."""
    keys = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    return replace(_certified(*keys, now, "kubernetes", x509.IPAddress(ipaddress.ip_address(host))), authority_key=b"")


def renewable(host: str, now: datetime, authority: str, service: str) -> Certificates:
    """Create such certificates for the DNS name `service`, too, as cert-controller would: it takes them for its own.

    It looks for the CA's name as a DNS name, and reads the CA's key in PKCS #1: pkg/rotator/rotator.go, v0.16.0.
    """
    ca_key, server_key = (rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2))
    names = x509.IPAddress(ipaddress.ip_address(host)), x509.DNSName(service)
    return _certified(ca_key, server_key, now, authority, *names)


def _certified(
    ca_key: _Key, server_key: _Key, now: datetime, authority_name: str, *names: x509.GeneralName
) -> Certificates:
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, authority_name)])
    authority = (
        _begun(ca_name, ca_name, ca_key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(authority_name)]), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    own_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kube-apiserver")])
    server = (
        _begun(own_name, ca_name, server_key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    pem, traditional = serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL
    unencrypted = serialization.NoEncryption()
    return Certificates(
        authority=authority.public_bytes(pem),
        server=server.public_bytes(pem),
        key=server_key.private_bytes(pem, serialization.PrivateFormat.PKCS8, unencrypted),
        authority_key=ca_key.private_bytes(pem, traditional, unencrypted),
    )


def _begun(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey | rsa.RSAPublicKey, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SLACK)
        .not_valid_after(now + _VALID)
    )


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
