"""The relay's manifests, compared with what the relay needs and does."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.kubernetes.overlay import BASE, kustomization
from relay import probe
from relay.kueue.objects import GROUP
from relay.notices import legacy_provisioner
from relay.notices.pinning import POD
from relay.settings import Settings
from tests.infra.relay.manifests import SHARED, a_relay, container, environment, the
from tpu_slices.domain.model.slices import OwnerKind

ROOT = Path(__file__).parents[2]
MESSAGING: dict[str, Any] = yaml.safe_load((ROOT / "infra" / "messaging.yaml").read_text())
ENVIRONMENT = {"CLUSTER": "demo", "GOOGLE_CLOUD_PROJECT": "demo-project"}
ROLE = "tpu-slice-provisioner-relay"
WATCHED = [kind for kind in OwnerKind if not (kind.declares or kind.is_spare)]
ROLES = (the("ClusterRole", name=ROLE), the("Role"))


def test_the_relay_may_read_write_events_and_patch_nodes_and_pods_and_nothing_else() -> None:
    allowed = {
        (resource, verb)
        for role in ROLES
        for rule in role["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert allowed == {
        *((f"{kind.lower()}s", verb) for kind in WATCHED for verb in ("get", "list", "watch")),
        *(("nodes", verb) for verb in ("list", "watch")),
        ("events", "create"),
        ("events", "patch"),
        ("nodes", "patch"),
        ("pods", "patch"),
        ("persistentvolumeclaims", "get"),
        ("persistentvolumes", "get"),
        ("deployments", "get"),
        ("events", "list"),
        ("replicasets", "get"),
        ("mutatingadmissionpolicybindings", "get"),
        ("pods", "create"),
        ("jobsets", "create"),
        *(("tpuslices", verb) for verb in ("list", "create", "patch", "delete")),
        *(("tpuworkloads", verb) for verb in ("list", "create", "patch", "delete")),
        ("tpumirrors", "create"),
        ("tpumirrors", "patch"),
    }


def test_of_kueue_it_may_read_what_it_answers_and_write_status_alone() -> None:
    role = the("ClusterRole", name=f"{ROLE}-kueue")
    allowed = {(each, verb) for rule in role["rules"] for each in rule["resources"] for verb in rule["verbs"]}
    read = ("admissionchecks", "resourceflavors", "workloads")
    written = {("admissionchecks/status", "patch"), ("workloads/status", "patch")}
    assert allowed == {*((each, verb) for each in read for verb in ("list", "watch"))} | written
    assert {group for rule in role["rules"] for group in rule["apiGroups"]} == {GROUP}


def test_it_may_create_pods_in_its_own_namespace_alone_where_a_policy_refuses_each_that_would_be_stored() -> None:
    rules = [(role, rule) for role in ROLES for rule in role["rules"] if "create" in rule["verbs"]]
    (role,) = (role for role, rule in rules if "pods" in rule["resources"])
    assert (role["kind"], role["metadata"]["namespace"]) == ("Role", POD["metadata"]["namespace"])
    policy = the("ValidatingAdmissionPolicy", name="tpu-slice-provisioner-relay-pods")
    (rule,) = policy["spec"]["matchConstraints"]["resourceRules"]
    assert (rule["resources"], rule["operations"]) == (["pods"], ["CREATE", "UPDATE"])
    assert "request.operation != 'CREATE' || has(request.dryRun) && request.dryRun" in [
        each["expression"] for each in policy["spec"]["validations"]
    ]


def test_it_may_create_jobsets_in_its_own_namespace_alone_where_a_policy_refuses_each_that_would_be_stored() -> None:
    rules = [(role, rule) for role in ROLES for rule in role["rules"] if "create" in rule["verbs"]]
    (role,) = (role for role, rule in rules if "jobsets" in rule["resources"])
    assert (role["kind"], role["metadata"]["namespace"]) == ("Role", POD["metadata"]["namespace"])
    policy = the("ValidatingAdmissionPolicy", name="tpu-slice-provisioner-relay-jobsets")
    (rule,) = policy["spec"]["matchConstraints"]["resourceRules"]
    assert (rule["resources"], rule["operations"]) == (["jobsets"], ["CREATE"])
    assert [each["expression"] for each in policy["spec"]["validations"]] == ["has(request.dryRun) && request.dryRun"]


def test_the_relay_may_read_two_deployments_its_own_in_its_namespace_alone() -> None:
    rules = {role["kind"]: rule for role in ROLES for rule in role["rules"] if rule["resources"] == ["deployments"]}
    assert all((rule["apiGroups"], rule["verbs"]) == (["apps"], ["get"]) for rule in rules.values())
    assert rules["ClusterRole"]["resourceNames"] == [legacy_provisioner.TPU_PROVISIONER.deployment]
    assert rules["Role"]["resourceNames"] == [legacy_provisioner.OURS[1]]
    own = the("Deployment")["metadata"]
    assert (own["namespace"], own["name"]) == legacy_provisioner.OURS
    assert the("Role")["metadata"]["namespace"] == own["namespace"]


@pytest.mark.parametrize(("role", "name"), [("ClusterRole", ROLE), ("Role", "relay")])
def test_each_role_is_bound_to_the_relays_service_account(role: str, name: str) -> None:
    account, binding = the("ServiceAccount")["metadata"], the(f"{role}Binding", name=name)
    (subject,) = binding["subjects"]
    assert (subject["name"], subject["namespace"]) == (account["name"], account["namespace"])
    assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) == (role, the(role, name=name)["metadata"]["name"])
    deployment = the("Deployment")
    assert deployment["metadata"]["namespace"] == account["namespace"]
    assert deployment["spec"]["template"]["spec"]["serviceAccountName"] == account["name"]


def test_base_and_overlay_together_set_every_required_variable() -> None:
    (patch,) = (each for each in kustomization(a_relay(), BASE)["patches"] if "target" not in each)
    added = environment([yaml.safe_load(patch["patch"])])
    assert not added.keys() & environment(SHARED).keys()
    settings = Settings.read(environment(SHARED) | added)
    assert (settings.cluster, settings.project, settings.version) == ("blue", "shop", "1.2.3")
    assert settings.watch_silence == 90


def test_the_probes_are_run_in_the_container_and_ask_at_the_relays_socket() -> None:
    assert Settings.read(ENVIRONMENT | environment(SHARED)).probe_socket
    assert "ports" not in container()
    for kind, name in (("readinessProbe", "readyz"), ("livenessProbe", "livez")):
        kubelets = container()[kind]
        assert list(kubelets).count("exec") == 1
        assert kubelets["exec"]["command"] == ["python", "-IS", "/app/relay/probe.py", name]
        assert kubelets["timeoutSeconds"] > probe.SECONDS


def test_by_default_probes_are_not_answered() -> None:
    assert Settings.read(ENVIRONMENT).probe_socket == ""


def test_the_relays_topic_and_subscriptions_are_created() -> None:
    settings = Settings.read(ENVIRONMENT)
    topics = [topic.replace("{cluster}", "demo") for topic in MESSAGING["topics"]]
    subscriptions = {name.replace("{cluster}", "demo"): row for name, row in MESSAGING["subscriptions"].items()}
    assert settings.topic.removeprefix("projects/demo-project/topics/") in topics
    names = [each.removeprefix("projects/demo-project/subscriptions/") for each in settings.subscriptions]
    pulled = [(subscriptions[name]["topic"], subscriptions[name].get("function")) for name in names]
    assert pulled == [("updates-{cluster}", None), ("questions-{cluster}", None)]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"CLUSTER": ""}, "not set in the environment: CLUSTER"),
        ({"CLUSTER": "prod.eu"}, 'CLUSTER: "prod.eu" is not the ID of a cluster'),
        ({"CLUSTER": "", "GOOGLE_CLOUD_PROJECT": ""}, "CLUSTER, GOOGLE_CLOUD_PROJECT"),
        ({"WATCH_SILENCE_SECONDS": "soon"}, 'WATCH_SILENCE_SECONDS: "soon" is not a number from 1 to 200'),
        ({"WATCH_SILENCE_SECONDS": "0"}, "is not a number from 1 to 200"),
        ({"WATCH_SILENCE_SECONDS": "nan"}, "is not a number from 1 to 200"),
        ({"HOSTS_IN": "us-central1"}, 'HOSTS_IN: "us-central1" is not projects/P/locations/L'),
        ({"SERVE": "Deployment,DaemonSet"}, 'SERVE: "Deployment,DaemonSet" has more than Pod, Deployment, StatefulSet'),
        ({"PUBLISH_PATIENCE_SECONDS": "x"}, 'PUBLISH_PATIENCE_SECONDS: "x" is not a number from 1 to 3600'),
    ],
)
def test_an_invalid_variable_is_an_error_that_names_it(changes: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Settings.read(ENVIRONMENT | changes)
