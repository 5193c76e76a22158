"""What the relay is deployed with, against what it does."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from relay import legacy_provisioner
from relay.settings import Settings

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


def test_the_relay_may_look_write_events_and_mark_nodes_and_nothing_else() -> None:
    allowed = {
        (resource, verb)
        for rule in of_kind("ClusterRole")["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert allowed == {
        ("jobsets", "get"),
        *((resource, verb) for resource in ("jobsets", "pods", "nodes") for verb in ("list", "watch")),
        ("events", "create"),
        ("events", "patch"),
        ("nodes", "patch"),
        ("persistentvolumeclaims", "get"),
        ("persistentvolumes", "get"),
        ("deployments", "get"),
    }


def test_of_deployments_the_relay_may_see_two() -> None:
    (rule,) = (rule for rule in of_kind("ClusterRole")["rules"] if rule["resources"] == ["deployments"])
    assert (rule["apiGroups"], rule["verbs"]) == (["apps"], ["get"])
    assert rule["resourceNames"] == [legacy_provisioner.THEIRS[1], legacy_provisioner.OURS[1]]
    own = of_kind("Deployment")["metadata"]
    assert (own["namespace"], own["name"]) == legacy_provisioner.OURS


def test_the_role_is_bound_to_the_account_that_the_relay_runs_as() -> None:
    account = of_kind("ServiceAccount")["metadata"]
    (subject,) = of_kind("ClusterRoleBinding")["subjects"]
    assert (subject["name"], subject["namespace"]) == (account["name"], account["namespace"])
    assert of_kind("ClusterRoleBinding")["roleRef"]["name"] == of_kind("ClusterRole")["metadata"]["name"]
    deployment = of_kind("Deployment")
    assert deployment["metadata"]["namespace"] == account["namespace"]
    assert deployment["spec"]["template"]["spec"]["serviceAccountName"] == account["name"]


def test_the_manifest_gives_the_relay_all_that_it_must_be_told() -> None:
    given = {variable["name"]: variable["value"] for variable in container()["env"]}
    filled = {name: value.strip("${}").lower() for name, value in given.items()}
    settings = Settings.read(filled)
    assert (settings.watch_silence, settings.probe_host) == (90, "0.0.0.0")


def test_kubernetes_probes_what_the_relay_answers_where_it_answers() -> None:
    (port,) = container()["ports"]
    given = {variable["name"]: variable["value"] for variable in container()["env"]}
    assert given["PROBE_PORT"] == str(port["containerPort"])
    for probe, path in (("readinessProbe", "/readyz"), ("livenessProbe", "/livez")):
        assert container()[probe]["httpGet"] == {"path": path, "port": port["name"]}


def test_the_relay_cannot_miss_firestore() -> None:
    """It does not so much as load it: what happens there is none of its concern."""
    loaded = "import sys, relay.__main__; print(sum('firestore' in name for name in sys.modules))"
    said = subprocess.run([sys.executable, "-c", loaded], cwd=ROOT, capture_output=True, text=True, check=True)
    assert said.stdout == "0\n"


def test_a_relay_that_is_told_nothing_of_probes_answers_at_home() -> None:
    settings = Settings.read(ENVIRONMENT)
    assert (settings.probe_host, settings.probe_port) == ("127.0.0.1", 8081)
    assert Settings.read(ENVIRONMENT | {"PROBE_PORT": "0"}).probe_port == 0


def test_the_manifest_asks_for_nothing_but_what_the_roll_out_puts_in() -> None:
    assert set(re.findall(r"\$\{(\w+)\}", MANIFEST.partition("\n")[2])) == {"IMAGE", "CLUSTER", "PROJECT"}


def test_the_topic_and_the_subscription_are_among_those_that_are_made() -> None:
    settings = Settings.read(ENVIRONMENT)
    topics = [topic.replace("{cluster}", "demo") for topic in MESSAGING["topics"]]
    subscriptions = {name.replace("{cluster}", "demo"): row for name, row in MESSAGING["subscriptions"].items()}
    assert settings.topic.removeprefix("projects/demo-project/topics/") in topics
    pulled = subscriptions[settings.subscription.removeprefix("projects/demo-project/subscriptions/")]
    assert (pulled["topic"], pulled.get("function")) == ("slice-updates", None)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"CLUSTER": ""}, "not set in the environment: CLUSTER"),
        ({"CLUSTER": "", "GOOGLE_CLOUD_PROJECT": ""}, "CLUSTER, GOOGLE_CLOUD_PROJECT"),
        ({"WATCH_SILENCE_SECONDS": "soon"}, 'WATCH_SILENCE_SECONDS: "soon" is no number from 1 to 200'),
        ({"WATCH_SILENCE_SECONDS": "0"}, "is no number from 1 to 200"),
        ({"WATCH_SILENCE_SECONDS": "nan"}, "is no number from 1 to 200"),
        ({"PROBE_PORT": "65536"}, 'PROBE_PORT: "65536" is no number from 0 to 65535'),
        ({"PUBLISH_PATIENCE_SECONDS": "x"}, 'PUBLISH_PATIENCE_SECONDS: "x" is no number from 1 to 3600'),
    ],
)
def test_a_relay_that_is_told_nonsense_says_what_is_wrong(changes: dict[str, str], says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        Settings.read(ENVIRONMENT | changes)
