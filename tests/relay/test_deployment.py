"""What the relay is deployed with, against what it does."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from relay import tpu_provisioner
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
        ("nodes", "patch"),
        ("persistentvolumeclaims", "get"),
        ("persistentvolumes", "get"),
        ("deployments", "get"),
    }


def test_of_deployments_the_relay_may_see_two() -> None:
    (rule,) = (rule for rule in of_kind("ClusterRole")["rules"] if rule["resources"] == ["deployments"])
    assert (rule["apiGroups"], rule["verbs"]) == (["apps"], ["get"])
    assert rule["resourceNames"] == [tpu_provisioner.THEIRS[1], tpu_provisioner.OURS[1]]
    own = of_kind("Deployment")["metadata"]
    assert (own["namespace"], own["name"]) == tpu_provisioner.OURS


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
    assert Settings.read(filled).watch_silence == 90


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
    ],
)
def test_a_relay_that_is_told_nonsense_says_what_is_wrong(changes: dict[str, str], says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        Settings.read(ENVIRONMENT | changes)
