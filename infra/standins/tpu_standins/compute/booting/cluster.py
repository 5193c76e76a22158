"""The API server of a kubeconfig, as a machine that joins meets it, whatever address the machine was given."""

from __future__ import annotations

import base64
import hashlib
from http import HTTPStatus
from pathlib import Path

import urllib3
import yaml
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from urllib3.exceptions import HTTPError

from tpu_standins.compute.booting.kubeadm import CannotJoinError
from tpu_standins.patience import PATIENCE_SECONDS


class KubeconfigServer:
    """Implements `kubeadm.ApiServer`. The kubeconfig is read each time: a new server has new certificates."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig

    def takes(self, token: str) -> bool:
        server, authority = self._read()
        with urllib3.PoolManager(ca_cert_data=authority, retries=False, timeout=PATIENCE_SECONDS) as pool:
            try:
                answer = pool.request("GET", f"{server}/version", headers={"Authorization": f"Bearer {token}"})
            except HTTPError as error:
                raise CannotJoinError(f"error execution phase preflight: {server} does not answer: {error}") from error
        return answer.status != HTTPStatus.UNAUTHORIZED

    def ca_hashes(self) -> tuple[str, ...]:
        _, authority = self._read()
        keys = (each.public_key() for each in x509.load_pem_x509_certificates(authority.encode()))
        return tuple(
            f"sha256:{hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()}"
            for key in keys
        )

    def _read(self) -> tuple[str, str]:
        try:
            document = yaml.safe_load(self._kubeconfig.read_text(encoding="utf-8"))
            cluster = document["clusters"][0]["cluster"]
            return cluster["server"], base64.b64decode(cluster["certificate-authority-data"]).decode()
        except (OSError, yaml.YAMLError, LookupError, TypeError, ValueError) as error:
            raise CannotJoinError(f"{self._kubeconfig} does not say how to reach the cluster: {error}") from error
