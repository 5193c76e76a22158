"""The certificate authorities that prove the API server to hosts that join. Pure."""

from __future__ import annotations

import hashlib

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat


def ca_hashes(bundle: str) -> tuple[str, ...]:
    """Return `sha256:…` of each certificate's public key, as kubeadm pins them; raise ValueError if one is none."""
    certificates = x509.load_pem_x509_certificates(bundle.encode())
    keys = (each.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo) for each in certificates)
    return tuple(dict.fromkeys(f"sha256:{hashlib.sha256(key).hexdigest()}" for key in keys))
