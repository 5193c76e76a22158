"""The relay's manifest, compared with what the relay needs and does."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from relay.notices import legacy_provisioner
from relay.settings import Settings
from tpu_slices.domain.model.slices import OwnerKind

ROOT = Path(__file__).parents[2]
MANIFEST = (ROOT / "infra" / "kubernetes" / "relay.yaml").read_text()
MESSAGING: dict[str, Any] = yaml.safe_load((ROOT / "infra" / "messaging.yaml").read_text())
ENVIRONMENT = {"CLUSTER": "demo", "GOOGLE_CLOUD_PROJECT": "demo-project"}


def of_kind(kind: str) -> Any:
    (found,) = (obj for obj in yaml.safe_load_all(MANIFEST) if obj["kind"] == kind)
    return found


def container() -> Any:
    (only,) = of_kind("Deployment")["spec"]["template"]["spec"]["containers"]
    return only


def test_the_relay_may_read_write_events_and_patch_nodes_and_nothing_else() -> None:
    allowed = {
        (resource, verb)
        for rule in of_kind("ClusterRole")["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert allowed == {
        *((f"{kind.lower()}s", verb) for kind in OwnerKind for verb in ("get", "list", "watch")),
        *((resource, verb) for resource in ("pods", "nodes") for verb in ("list", "watch")),
        ("events", "create"),
        ("events", "patch"),
        ("nodes", "patch"),
        ("persistentvolumeclaims", "get"),
        ("persistentvolumes", "get"),
        ("deployments", "get"),
        ("events", "list"),
        ("replicasets", "get"),
    }


def test_the_relay_may_read_two_deployments() -> None:
    (rule,) = (rule for rule in of_kind("ClusterRole")["rules"] if rule["resources"] == ["deployments"])
    assert (rule["apiGroups"], rule["verbs"]) == (["apps"], ["get"])
    assert rule["resourceNames"] == [legacy_provisioner.THEIRS[1], legacy_provisioner.OURS[1]]
    own = of_kind("Deployment")["metadata"]
    assert (own["namespace"], own["name"]) == legacy_provisioner.OURS


def test_the_role_is_bound_to_the_relays_service_account() -> None:
    account = of_kind("ServiceAccount")["metadata"]
    (subject,) = of_kind("ClusterRoleBinding")["subjects"]
    assert (subject["name"], subject["namespace"]) == (account["name"], account["namespace"])
    assert of_kind("ClusterRoleBinding")["roleRef"]["name"] == of_kind("ClusterRole")["metadata"]["name"]
    deployment = of_kind("Deployment")
    assert deployment["metadata"]["namespace"] == account["namespace"]
    assert deployment["spec"]["template"]["spec"]["serviceAccountName"] == account["name"]


def test_the_manifest_sets_every_required_variable() -> None:
    given = {variable["name"]: variable["value"] for variable in container()["env"]}
    filled = {name: value.strip("${}").lower() for name, value in given.items()}
    settings = Settings.read(filled)
    assert (settings.watch_silence, settings.probe_host) == (90, "0.0.0.0")


def test_the_probes_use_the_relays_port_and_paths() -> None:
    (port,) = container()["ports"]
    given = {variable["name"]: variable["value"] for variable in container()["env"]}
    assert given["PROBE_PORT"] == str(port["containerPort"])
    for probe, path in (("readinessProbe", "/readyz"), ("livenessProbe", "/livez")):
        assert container()[probe]["httpGet"] == {"path": path, "port": port["name"]}


@pytest.mark.slow
def test_the_relay_does_not_load_firestore() -> None:
    """An outage of Firestore cannot affect it."""
    loaded = "import sys, relay.__main__; print(sum('firestore' in name for name in sys.modules))"
    result = subprocess.run([sys.executable, "-c", loaded], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout == "0\n"


def test_by_default_probes_are_served_on_the_loopback_interface() -> None:
    settings = Settings.read(ENVIRONMENT)
    assert (settings.probe_host, settings.probe_port) == ("127.0.0.1", 8081)
    assert Settings.read(ENVIRONMENT | {"PROBE_PORT": "0"}).probe_port == 0


def test_the_manifests_placeholders_are_those_that_the_roll_out_fills_in() -> None:
    assert set(re.findall(r"\$\{(\w+)\}", MANIFEST.partition("\n")[2])) == {
        "IMAGE",
        "CLUSTER",
        "PROJECT",
        "VERSION",
    }


def test_the_relays_topic_and_subscription_are_created() -> None:
    settings = Settings.read(ENVIRONMENT)
    topics = [topic.replace("{cluster}", "demo") for topic in MESSAGING["topics"]]
    subscriptions = {name.replace("{cluster}", "demo"): row for name, row in MESSAGING["subscriptions"].items()}
    assert settings.topic.removeprefix("projects/demo-project/topics/") in topics
    pulled = subscriptions[settings.subscription.removeprefix("projects/demo-project/subscriptions/")]
    assert (pulled["topic"], pulled.get("function")) == ("slice-updates", None)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"CLUSTER": ""}, "not set in the environment: CLUSTER"),
        ({"CLUSTER": "prod.eu"}, 'CLUSTER: "prod.eu" is not the ID of a cluster'),
        ({"CLUSTER": "", "GOOGLE_CLOUD_PROJECT": ""}, "CLUSTER, GOOGLE_CLOUD_PROJECT"),
        ({"WATCH_SILENCE_SECONDS": "soon"}, 'WATCH_SILENCE_SECONDS: "soon" is not a number from 1 to 200'),
        ({"WATCH_SILENCE_SECONDS": "0"}, "is not a number from 1 to 200"),
        ({"WATCH_SILENCE_SECONDS": "nan"}, "is not a number from 1 to 200"),
        ({"PROBE_PORT": "65536"}, 'PROBE_PORT: "65536" is not a number from 0 to 65535'),
        ({"PUBLISH_PATIENCE_SECONDS": "x"}, 'PUBLISH_PATIENCE_SECONDS: "x" is not a number from 1 to 3600'),
    ],
)
def test_an_invalid_variable_is_an_error_that_names_it(changes: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Settings.read(ENVIRONMENT | changes)
