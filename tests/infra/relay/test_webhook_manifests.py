"""What the admission webhook has in a cluster, and how the API server calls it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from infra.kubernetes.overlay import NAMESPACE, WEBHOOK, pinning_settings, write
from relay.webhook.calls import CONFIGURATION, SECRET
from relay.webhook.placing import Options
from relay.webhook.settings import PORT, Settings
from tests.infra.admission.settings import DEFINED, GANGS, MANIFEST
from tests.infra.relay.manifests import IMAGE, Json, a_relay, built, the

pytestmark = [pytest.mark.emulators]
CALLED = yaml.safe_load((WEBHOOK.parent / "webhook-configuration.yaml").read_text())


@pytest.fixture(scope="module")
def manifests(tmp_path_factory: pytest.TempPathFactory) -> list[Json]:
    folder: Path = tmp_path_factory.mktemp("overlay")
    write(a_relay(), folder)
    return built(folder / "webhook")


@pytest.fixture
def pod(manifests: list[Json]) -> Json:
    found: Json = the("Deployment", manifests)["spec"]["template"]["spec"]
    return found


def test_it_runs_from_the_relays_image_without_privileges(pod: Json) -> None:
    [only] = pod["containers"]
    assert (only["image"], only["command"]) == (IMAGE, ["python", "-m", "relay.webhook"])
    assert only["securityContext"]["readOnlyRootFilesystem"] is True
    assert only["securityContext"]["allowPrivilegeEscalation"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert {"hostNetwork", "hostPID", "hostIPC"}.isdisjoint(pod)


def test_there_are_always_two_and_neither_roll_out_nor_drain_takes_both(manifests: list[Json]) -> None:
    spec = the("Deployment", manifests)["spec"]
    assert (spec["replicas"], spec["strategy"]["rollingUpdate"]["maxUnavailable"]) == (2, 0)
    assert the("PodDisruptionBudget", manifests)["spec"]["minAvailable"] == 1


def test_its_own_port_alone_is_open_and_a_private_cluster_reaches_it(manifests: list[Json], pod: Json) -> None:
    [only] = pod["containers"]
    [port] = only["ports"]
    [rule] = the("NetworkPolicy", manifests)["spec"]["ingress"]
    assert PORT == port["containerPort"] == 10250
    assert rule["ports"] == [{"protocol": "TCP", "port": PORT}]
    assert {probe["httpGet"]["port"] for probe in (only["readinessProbe"], only["livenessProbe"])} == {port["name"]}


def test_it_has_time_to_answer_what_comes_after_it_was_told_to_end(pod: Json) -> None:
    assert pod["terminationGracePeriodSeconds"] >= Settings.read({}).drain_seconds + 15


def test_all_that_refers_to_it_means_it(manifests: list[Json], pod: Json) -> None:
    labels = the("Deployment", manifests)["spec"]["template"]["metadata"]["labels"]
    selectors = [
        the("Service", manifests)["spec"]["selector"],
        the("NetworkPolicy", manifests)["spec"]["podSelector"]["matchLabels"],
        the("PodDisruptionBudget", manifests)["spec"]["selector"]["matchLabels"],
    ]
    assert all(selector.items() <= labels.items() for selector in selectors)
    assert pod["serviceAccountName"] == the("ServiceAccount", manifests)["metadata"]["name"]
    assert all(each["metadata"].get("namespace", NAMESPACE) == NAMESPACE for each in manifests)


def test_it_may_change_its_secret_and_its_configuration_and_nothing_else(manifests: list[Json]) -> None:
    [secret] = the("Role", manifests)["rules"]
    [configuration] = the("ClusterRole", manifests)["rules"]
    assert the("Secret", manifests)["metadata"]["name"] == SECRET
    assert (secret["resources"], secret["resourceNames"]) == (["secrets"], [SECRET])
    assert configuration["resources"] == ["mutatingwebhookconfigurations"]
    assert configuration["resourceNames"] == [CONFIGURATION] == [CALLED["metadata"]["name"]]
    assert secret["verbs"] == configuration["verbs"] == ["get", "patch"]


def test_to_apply_it_again_leaves_its_certificates_and_what_is_trusted(manifests: list[Json]) -> None:
    assert {"data", "stringData"}.isdisjoint(the("Secret", manifests))
    assert all("caBundle" not in each["clientConfig"] for each in CALLED["webhooks"])


def test_the_api_server_calls_its_service_by_a_name_of_its_certificate(manifests: list[Json]) -> None:
    for called in CALLED["webhooks"]:
        service = called["clientConfig"]["service"]
        assert (service["name"], service["namespace"]) == (the("Service", manifests)["metadata"]["name"], NAMESPACE)
        assert Settings.read({}).names == (f"{service['name']}.{service['namespace']}.svc",)
        assert [each["port"] for each in the("Service", manifests)["spec"]["ports"]] == [service["port"]]


@pytest.mark.parametrize(("called", "policy"), [*zip(CALLED["webhooks"], (DEFINED, GANGS), strict=True)])
def test_the_api_server_asks_about_what_the_policy_judges(called: Json, policy: Json) -> None:
    constraints = policy["spec"]["matchConstraints"]
    assert called["matchConditions"] == policy["spec"]["matchConditions"]
    assert called["rules"] == constraints["resourceRules"]
    for field in ("failurePolicy", "reinvocationPolicy"):
        assert called[field] == policy["spec"][field]
    for field in ("matchPolicy", "namespaceSelector", "objectSelector"):
        assert called[field] == constraints[field]


def test_it_knows_what_was_deployed(pod: Json) -> None:
    values = {each["name"]: each.get("value") for each in pod["containers"][0]["env"]}
    assert (values["GOOGLE_CLOUD_PROJECT"], values["VERSION"]) == ("shop", "1.2.3")
    assert (values["STRIP_SPOT_AND_RESERVATION"], values["LOCATION_HINT"]) == ("false", "")


def test_it_has_the_settings_of_the_policy(tmp_path: Path) -> None:
    policy = tmp_path / "admission.yaml"
    text = MANIFEST.read_text()
    policy.write_text(text.replace("expression: 'false'", "expression: 'true'", 1).replace("'\"\"'", "'\"cell-a\"'", 1))
    settings = Settings.read(pinning_settings(policy))
    assert settings.options == Options(strips_capacity=True, location_hint="cell-a")
    policy.write_text(text.replace("expression: 'false'", "expression: object.x", 1))
    with pytest.raises(ValueError, match=r"admission\.yaml: stripSpotAndReservation"):
        pinning_settings(policy)


def test_a_self_managed_cluster_pulls_its_image_as_the_relays(tmp_path: Path) -> None:
    write(replace(a_relay(), hosts_in="projects/p/locations/l"), tmp_path)
    account = the("ServiceAccount", built(tmp_path / "webhook"))
    assert account["imagePullSecrets"] == the("ServiceAccount", built(tmp_path))["imagePullSecrets"]
