"""What a project installs for its controller, as it is installed for one that runs outside of the cluster."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from tpu_standins.certificates import Certificates, certificates, renewable
from tpu_standins.controllers.manifests import HOST, Place, configuration, configured, objects, questions, service

Json = dict[str, Any]
PLACE = Place(folder=Path("/folder"), webhook_port=9443, health_port=8081)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
OWN = certificates(HOST, NOON)


def called_as(path: str) -> Json:
    service = {"name": "webhook-service", "namespace": "widgets-system", "path": path}
    return {"service": service}


def an_object(kind: str, **fields: Any) -> Json:
    return {"kind": kind, "metadata": {"name": f"a-{kind.lower()}"}, **fields}


def applied(*manifests: Json, own: Certificates = OWN) -> tuple[list[Json], list[Json]]:
    return objects(manifests, PLACE, own)


@pytest.mark.parametrize("kind", ["Deployment", "Service", "Secret", "APIService", "ConfigMap"])
def test_what_runs_in_the_cluster_is_left_out(kind: str) -> None:
    assert applied(an_object(kind)) == ([], [])


@pytest.mark.parametrize("kind", ["Namespace", "ServiceAccount", "ClusterRole", "RoleBinding"])
def test_what_the_controller_may_do_is_applied_as_it_is(kind: str) -> None:
    assert applied(an_object(kind)) == ([an_object(kind)], [])


@pytest.mark.parametrize("kind", ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"])
def test_webhooks_are_called_on_loopback_and_come_last(kind: str) -> None:
    one = {"name": "one", "failurePolicy": "Fail", "clientConfig": called_as("/mutate")}
    webhooks = [one, {"name": "two", "clientConfig": called_as("/validate")}]
    first, (made,) = applied(an_object(kind, webhooks=webhooks))
    assert first == []
    assert [each["clientConfig"]["url"] for each in made["webhooks"]] == [
        "https://127.0.0.1:9443/mutate",
        "https://127.0.0.1:9443/validate",
    ]
    assert base64.b64decode(made["webhooks"][0]["clientConfig"]["caBundle"]) == OWN.authority
    assert made["webhooks"][0]["failurePolicy"] == "Fail"


def test_the_paths_of_all_webhooks_are_known() -> None:
    kinds = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    webhooks = [an_object(kind, webhooks=[{"name": "one", "clientConfig": called_as(f"/{kind}")}]) for kind in kinds]
    of_one_version = CONVERTED | {"spec": CONVERTED["spec"] | {"versions": [{"name": "v1"}]}}
    single = yaml.safe_load(yaml.safe_dump(of_one_version).replace("/convert", "/never"))
    manifests = [an_object("Namespace"), CONVERTED, single, *webhooks]
    asked = {path: question["kind"] for path, question in questions(manifests).items()}
    assert asked == {"/convert": "ConversionReview", **dict.fromkeys((f"/{kind}" for kind in kinds), "AdmissionReview")}
    assert service(manifests) == "webhook-service.widgets-system.svc"


def test_a_program_that_renews_its_certificate_finds_it_in_its_secret() -> None:
    own = renewable(HOST, NOON, "widgets-ca", "webhook-service.widgets-system.svc")
    ((secret,), _) = applied(an_object("Secret"), own=own)
    data = {name: base64.b64decode(value) for name, value in secret["data"].items()}
    assert data == {"ca.crt": own.authority, "ca.key": own.authority_key, "tls.crt": own.server, "tls.key": own.key}
    assert data["ca.key"].startswith(b"-----BEGIN RSA PRIVATE KEY-----")


CONVERTED = an_object(
    "CustomResourceDefinition",
    spec={
        "versions": [{"name": "v1"}, {"name": "v2"}],
        "conversion": {
            "strategy": "Webhook",
            "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": called_as("/convert")},
        },
    },
)


def test_a_kind_is_converted_on_loopback() -> None:
    ((made,), _) = applied(CONVERTED)
    conversion = made["spec"]["conversion"]
    assert conversion["webhook"]["clientConfig"]["url"] == "https://127.0.0.1:9443/convert"
    assert conversion["webhook"]["conversionReviewVersions"] == ["v1"]


def test_a_kind_without_a_conversion_is_applied_as_it_is() -> None:
    crd = an_object("CustomResourceDefinition", spec={"group": "example.com"})
    assert applied(crd) == ([crd], [])


def test_the_program_reads_its_projects_configuration_with_the_addresses_that_it_has_here() -> None:
    theirs = {"kind": "Configuration", "leaderElection": {"leaderElect": True}, "clientConnection": {"qps": 300}}
    manifest = an_object("ConfigMap", data={"controller_manager_config.yaml": yaml.safe_dump(theirs)})
    text = configuration([an_object("ConfigMap", data={}), manifest])
    read = yaml.safe_load(configured(text, PLACE, {"featureGates": {"Widgets": False}}))
    assert (read["kind"], read["clientConnection"]) == ("Configuration", {"qps": 300})
    assert read["featureGates"] == {"Widgets": False}
    assert read["leaderElection"] == {"leaderElect": False}
    assert read["webhook"] == {"host": "127.0.0.1", "port": 9443, "certDir": "/folder"}
    assert read["health"] == {"healthProbeBindAddress": "127.0.0.1:8081"}
