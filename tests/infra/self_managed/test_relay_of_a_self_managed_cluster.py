"""The relay's manifests in a self-managed cluster, and who it is for Google there."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import google.auth
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.auth import identity_pool
from google.oauth2 import service_account

from infra.kubernetes.__main__ import main
from tests.infra.metadata import GET_TOKEN, TOKEN, asking, metadata
from tests.infra.relay.manifests import IMAGE, a_relay, built, container, deployed, environment, the

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

SETTINGS = "path: projects/chips/locations/us-central1\ncompute: {image: projects/p/global/images/i}\n"
POOL = "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/own/providers/own"
SCOPE = "https://www.googleapis.com/auth/cloud-platform"


@pytest.fixture(scope="module")
def manifests(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Return what is applied to a self-managed cluster."""
    folder = tmp_path_factory.mktemp("self-managed")
    (folder / "own.yaml").write_text(SETTINGS)
    arguments = ["--project", "shop", "--version", "1.2.3", "--image", IMAGE, "--into", str(folder / "relay")]
    assert main([*arguments, str(folder / "own.yaml")]) == 0
    return built(folder / "relay" / "own")


def pod(manifests: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = the("Deployment", manifests)["spec"]["template"]["spec"]
    return found


def projected(manifests: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what is in the folder of Google's credentials, by kind of source."""
    [mount] = container(manifests)["volumeMounts"]
    [volume] = pod(manifests)["volumes"]
    assert mount["name"] == volume["name"]
    assert mount["mountPath"] == environment(manifests)["CLOUDSDK_CONFIG"]
    assert mount["readOnly"] is True
    return {kind: source for each in volume["projected"]["sources"] for kind, source in each.items()}


def test_it_may_run_on_any_node_of_linux_and_amd64(manifests: list[dict[str, Any]]) -> None:
    assert pod(manifests)["nodeSelector"] == {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}


def test_its_account_has_the_name_of_its_cluster_and_pulls_its_image(manifests: list[dict[str, Any]]) -> None:
    account = the("ServiceAccount", manifests)
    assert account["metadata"]["name"] == pod(manifests)["serviceAccountName"] == "relay-own"
    assert account["imagePullSecrets"] == [{"name": "relay-image"}]


def test_it_starts_without_a_secret_and_has_a_token_for_nobody_but_the_provisioner(
    manifests: list[dict[str, Any]],
) -> None:
    found = projected(manifests)
    assert found["secret"] == {"name": "relay-google", "optional": True}
    assert found["serviceAccountToken"]["audience"] == "tpu-slice-provisioner"


def test_on_gke_there_is_nothing_of_it(tmp_path: Path) -> None:
    on_gke = deployed(a_relay(), tmp_path)
    assert pod(on_gke)["nodeSelector"]["iam.gke.io/gke-metadata-server-enabled"] == "true"
    assert "volumes" not in pod(on_gke)
    assert "imagePullSecrets" not in the("ServiceAccount", on_gke)


def key() -> dict[str, str]:
    made = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    text = made.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    return {
        "type": "service_account",
        "client_email": "tpu-relay-own@shop.iam.gserviceaccount.com",
        "token_uri": "https://oauth2.googleapis.com/token",
        "private_key": text,
    }


def federation(token: str) -> dict[str, Any]:
    """Return what `gcloud iam workload-identity-pools create-cred-config` writes."""
    return {
        "type": "external_account",
        "audience": POOL,
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "token_url": "https://sts.googleapis.com/v1/token",
        "credential_source": {"file": token},
    }


def credentials(folder: Path, monkeypatch: pytest.MonkeyPatch, secret: Mapping[str, Any]) -> Any:
    """Return the credentials that the relay's libraries find with the folder and the variable that its pod has."""
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(folder))
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "shop")
    (folder / "application_default_credentials.json").write_text(json.dumps(secret))
    return google.auth.default(scopes=[SCOPE])[0]


def test_with_a_key_it_is_the_service_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = credentials(tmp_path, monkeypatch, key())
    assert isinstance(found, service_account.Credentials)
    assert found.service_account_email == "tpu-relay-own@shop.iam.gserviceaccount.com"


def test_with_a_configuration_of_federation_it_shows_its_own_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("its.own.token")
    found = credentials(tmp_path, monkeypatch, federation(str(tmp_path / "token")))
    assert isinstance(found, identity_pool.Credentials)
    assert found.retrieve_subject_token(None) == "its.own.token"


def test_without_a_secret_it_is_its_machine(tmp_path: Path) -> None:
    with metadata() as server:
        asked = {**asking(server), "CLOUDSDK_CONFIG": str(tmp_path), "GOOGLE_CLOUD_PROJECT": "shop"}
        command = [sys.executable, "-c", GET_TOKEN]
        got = subprocess.run(command, env=asked, capture_output=True, text=True, check=False)
    assert got.stdout == f"{TOKEN}\n", got.stderr


def test_the_page_makes_the_configuration_for_the_file_that_the_pod_has(manifests: list[dict[str, Any]]) -> None:
    page = (Path(__file__).parents[3] / "docs" / "self-managed.md").read_text()
    folder, path = environment(manifests)["CLOUDSDK_CONFIG"], projected(manifests)["serviceAccountToken"]["path"]
    assert f"--credential-source-file {folder}/{path}" in page
    assert f"--allowed-audiences {projected(manifests)['serviceAccountToken']['audience']}" in page
    for secret in ("secret generic relay-google", "secret docker-registry relay-image"):
        assert secret in page
