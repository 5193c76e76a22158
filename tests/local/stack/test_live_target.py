"""Which GKE cluster a stack may buy in, as whom, and up to how many chips."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import google.auth
import pytest
from google.auth import impersonated_credentials

from infra.local.addresses import Addresses
from infra.local.live_stack import document, released, write_credentials
from infra.local.live_target import CAP, Live, NotLive, Wanted, capped, impersonating, of_context
from tpu_slices.domain.model.slices import ClusterId

PATH = "projects/shop/locations/us-central2/clusters/b"
ACCOUNT = "buyer@shop.iam.gserviceaccount.com"
USER = {"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r"}


def wanted(**changes: Any) -> Wanted:
    return Wanted(**{"project": "shop", "account": ACCOUNT, "chips": 16, **changes})


def test_the_context_that_gcloud_writes_tells_the_cluster() -> None:
    live = of_context("gke_shop_us-central2_b", wanted())
    assert (live.path, live.settings) == (PATH, {"path": PATH, "policy": {CAP: 16}})
    assert live.list_command.startswith(
        "gcloud container node-pools list --cluster b --location us-central2 --project shop"
    )


@pytest.mark.parametrize(
    ("context", "why"),
    [
        ("kind-demo", "does not tell which GKE cluster it is"),
        ("gke_other_us-central2_b", "is of a cluster in other, not in shop"),
    ],
)
def test_another_context_is_refused(context: str, why: str) -> None:
    with pytest.raises(NotLive, match=why):
        of_context(context, wanted())


@pytest.mark.parametrize(("allowed", "chips"), [(None, 16), (8, 8), (64, 16)])
def test_the_cap_holds_whatever_the_settings_allow(allowed: int | None, chips: int) -> None:
    policy: dict[str, Any] = {"namespaces": {"a": {}}} | ({CAP: allowed} if allowed else {})
    assert capped({"policy": policy}, PATH, 16)["policy"] == {"namespaces": {"a": {}}, CAP: chips}


def test_settings_of_another_cluster_are_refused() -> None:
    with pytest.raises(NotLive, match="The settings are of projects/p/"):
        capped({"path": "projects/p/locations/l/clusters/c"}, PATH, 16)


@pytest.mark.parametrize(
    ("text", "why"), [("[", "cannot be read"), ("- a\n", "has no settings"), (None, "cannot be read")]
)
def test_settings_that_cannot_be_read_are_refused(text: str | None, why: str, tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(NotLive, match=why):
        of_context("gke_shop_us-central2_b", wanted(settings=file))


def test_settings_that_are_invalid_are_refused_by_their_field() -> None:
    live = Live(path=PATH, account=ACCOUNT, chips=16, settings={"path": PATH, "zome": "us-central2-b"})
    with pytest.raises(NotLive, match="zome"):
        document(live, ClusterId("demo"))


def test_googles_libraries_act_as_the_account_by_the_users_own_credentials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "user.json"
    file.write_text(json.dumps(USER))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    written = tmp_path / "credentials.json"
    write_credentials(of_context("gke_shop_us-central2_b", wanted()), written)
    assert written.stat().st_mode & 0o077 == 0

    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(written))
    found, _ = google.auth.default()
    assert isinstance(found, impersonated_credentials.Credentials)
    assert found.service_account_email == ACCOUNT


def test_credentials_that_impersonate_already_are_not_stacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "user.json"
    file.write_text(json.dumps(impersonating("another@shop.iam.gserviceaccount.com", USER)))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    write_credentials(of_context("gke_shop_us-central2_b", wanted()), tmp_path / "credentials.json")
    assert json.loads((tmp_path / "credentials.json").read_text())["source_credentials"] == USER


def test_without_credentials_the_command_to_log_in_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    with pytest.raises(NotLive, match="gcloud auth application-default login"):
        write_credentials(of_context("gke_shop_us-central2_b", wanted()), tmp_path / "credentials.json")


def test_if_slices_could_not_be_released_the_command_that_lists_node_pools_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    live = of_context("gke_shop_us-central2_b", wanted())
    addresses = Addresses(
        project="demo-project",
        location="us-central2",
        cluster_id="demo",
        pubsub="",
        firestore="",
        gke="",
        buttons="",
        proxy_port=0,
        proxy_buttons="",
        functions={},
        folder=tmp_path,
        live_path=PATH,
    )
    with released(live, addresses):
        assert capsys.readouterr().err == ""
    said = capsys.readouterr().err
    assert "Node pools may be left, which cost money." in said
    assert live.list_command in said
