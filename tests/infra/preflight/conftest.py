"""A cloud that lacks nothing, over HTTP, and the settings of one cluster in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.auth.credentials import AnonymousCredentials
from google.auth.transport.requests import AuthorizedSession

from infra.preflight.__main__ import Outside
from infra.preflight.api import Api
from tests.builders import NOW, a_record
from tests.builders import settings as demo_settings
from tests.infra.preflight import google_rest
from tests.infra.preflight.clouds import (
    BUCKET,
    CHANNELS,
    CLUSTER,
    KUEUE,
    NODES,
    PATH,
    PERMISSIONS,
    POLICY,
    QUOTA_INFOS,
    SERVICES,
    SUBNETWORK,
    config_map,
)
from tests.infra.preflight.google_rest import Cloud
from tpu_slices_simulator.fakes.store import FakeStore

ADMISSION = {"resources": [{"kind": "MutatingAdmissionPolicy"}, {"kind": "ValidatingAdmissionPolicy"}]}
WHOLE: dict[str, Any] = {
    "/v1/projects/shop/services:batchGet": SERVICES,
    "/v3/projects/shop:testIamPermissions": PERMISSIONS,
    "/v3/projects/shop:getIamPolicy": POLICY,
    "/v3/projects/shop": {"name": "projects/4711"},
    "/storage/v1/b/state": BUCKET,
    "/v3/projects/shop/notificationChannels": CHANNELS,
    f"/v1/projects/-/serviceAccounts/{NODES}": {"email": NODES},
    f"/v1/{PATH}": CLUSTER,
    "/compute/v1/projects/net/regions/us-central2/subnetworks/hosts": SUBNETWORK,
    "/compute/v1/projects/net/regions/us-central2/routers": {},
    **QUOTA_INFOS,
    "/version": {"major": "1"},
    "/apis/jobset.x-k8s.io/v1alpha2": {},
    "/apis/admissionregistration.k8s.io/v1": ADMISSION,
    "/apis/kueue.x-k8s.io": {},
    "/api/v1/namespaces/kueue-system/configmaps/kueue-manager-config": config_map(KUEUE),
}


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    """Return a cloud that lacks nothing."""
    with google_rest.served() as cloud:
        cloud.documents.update(WHOLE)
        yield cloud


@pytest.fixture
def api(cloud: Cloud) -> Iterator[Api]:
    """Return an edge whose addresses all lead to the cloud, the API server's too."""
    with AuthorizedSession(AnonymousCredentials()) as session:  # type: ignore[no-untyped-call]
        yield Api(session, {**cloud.hosts, "https://gke-c0ffee.us-central2.gke.goog": cloud.url})


@pytest.fixture
def outside(api: Api) -> Outside:
    """Return outside to that cloud, and to records with one slice that may have a node pool."""
    store = FakeStore()
    store.put_settings(demo_settings())
    store.put(a_record(create_requested_at=NOW))
    return Outside(lambda: api, lambda _: store)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with one cluster's settings."""
    settings = {"path": PATH, "pools": {"service_account": NODES}, "policy": {"chips_per_cluster": 16}}
    (tmp_path / "blue.yaml").write_text(json.dumps(settings))
    return tmp_path
