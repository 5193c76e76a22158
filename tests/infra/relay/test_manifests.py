"""The relay's manifests, as kubectl builds them for a cluster from the base and the overlay that the build writes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from infra.kubernetes.__main__ import main
from infra.kubernetes.overlay import BASE, KUSTOMIZATION, NAMESPACE, PLACEHOLDER, POLICY, Image, kustomization
from tests.infra.relay.manifests import (
    DIGEST,
    IMAGE,
    SHARED,
    Json,
    a_relay,
    built,
    container,
    deployed,
    environment,
    the,
)
from tests.infra.sources import ROOT

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

LONGEST = "a" * 63
"""The longest id of a cluster."""


def written(folder: Path, *files: Path, image: str = IMAGE) -> int:
    arguments = ["--project", "shop", "--version", "1.2.3", "--image", image, "--into", str(folder / "relay")]
    return main([*arguments, *map(str, files)])


def settings(folder: Path, name: str, text: str) -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(text)
    return path


def identity(manifest: Json) -> tuple[str, str]:
    return manifest["kind"], manifest["metadata"]["name"]


def test_the_relay_of_a_cluster_knows_which_one_it_is_of(tmp_path: Path) -> None:
    of_blue = deployed(a_relay(cluster="blue", project="shop", version="1.2.3"), tmp_path)

    known = {name: environment(of_blue)[name] for name in ("CLUSTER", "GOOGLE_CLOUD_PROJECT", "VERSION")}
    assert known == {"CLUSTER": "blue", "GOOGLE_CLOUD_PROJECT": "shop", "VERSION": "1.2.3"}
    assert container(of_blue)["image"] == IMAGE


def test_the_relay_of_a_self_managed_cluster_may_make_tokens(tmp_path: Path) -> None:
    plain = deployed(a_relay(), tmp_path / "plain")
    joining = deployed(replace(a_relay(), hosts_in="projects/shop/locations/us-central1"), tmp_path / "joining")
    beyond = [each for each in joining if identity(each) not in {identity(one) for one in plain}]
    assert {(each["kind"], each["metadata"].get("namespace")) for each in beyond} == {
        ("Role", "kube-system"),
        ("RoleBinding", "kube-system"),
        ("ClusterRole", None),
        ("ClusterRoleBinding", None),
        ("CustomResourceDefinition", None),
        ("ValidatingAdmissionPolicy", None),
        ("ValidatingAdmissionPolicyBinding", None),
    }
    [subject] = the("RoleBinding", beyond)["subjects"]
    assert subject == {"kind": "ServiceAccount", "name": "relay-blue", "namespace": NAMESPACE}
    assert the("Role", beyond)["rules"] == [
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create", "deletecollection"]},
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["kube-root-ca.crt"], "verbs": ["get"]},
    ]


SELF_MANAGED = """
path: projects/p/locations/us-central1
zone: us-central1-c
compute:
  image: projects/i/global/images/family/f
"""


def test_the_settings_say_whether_a_cluster_is_self_managed(tmp_path: Path) -> None:
    files = (
        settings(tmp_path, "own", SELF_MANAGED),
        ROOT / "infra" / "clusters" / "example-project" / "example-cluster.yaml",
    )
    assert written(tmp_path, *files) == 0
    components = {
        name: yaml.safe_load((tmp_path / "relay" / name / KUSTOMIZATION).read_text()).get("components")
        for name in ("own", "example-cluster")
    }
    assert components["example-cluster"] is None
    assert [Path(each).name for each in components["own"] or ()] == ["credentials", "joining", "self-managed"]


@pytest.mark.parametrize("cluster", ["blue", "no", "1e3x", LONGEST])
def test_its_service_account_has_a_name_that_no_other_clusters_relay_has(cluster: str, tmp_path: Path) -> None:
    manifests = deployed(a_relay(cluster=cluster), tmp_path)

    assert the("ServiceAccount", manifests)["metadata"]["name"] == f"relay-{cluster}"
    assert the("Deployment", manifests)["spec"]["template"]["spec"]["serviceAccountName"] == f"relay-{cluster}"
    for binding, name in (("ClusterRoleBinding", "tpu-slice-provisioner-relay"), ("RoleBinding", "relay")):
        [subject] = the(binding, manifests, name)["subjects"]
        assert subject == {"kind": "ServiceAccount", "name": f"relay-{cluster}", "namespace": NAMESPACE}
    subject_of_the_token = f"ns/{NAMESPACE}/sa/relay-{cluster}"
    assert len(subject_of_the_token) <= 127, "the longest subject of a workload identity"


def test_nothing_but_the_accounts_name_differs_in_what_the_clusters_have(tmp_path: Path) -> None:
    blue, red = (deployed(a_relay(cluster=name), tmp_path / name) for name in ("blue", "red"))

    assert [identity(each) for each in blue if each["kind"] != "ServiceAccount"] == [
        identity(each) for each in red if each["kind"] != "ServiceAccount"
    ]
    assert sorted(map(identity, blue)) == sorted(
        (kind, "relay-blue" if kind == "ServiceAccount" else name) for kind, name in map(identity, SHARED)
    )


def test_the_base_by_itself_runs_nobodys_image() -> None:
    """`.invalid` is never a registry (RFC 2606): no image is run that somebody gave this name."""
    image = container()["image"]
    assert image == PLACEHOLDER
    assert image.partition("/")[0].endswith(".invalid")


def test_the_example_is_what_the_build_writes_for_the_example_cluster(tmp_path: Path) -> None:
    example = BASE.parent / "overlays" / "example-cluster"
    text = (example / KUSTOMIZATION).read_text()
    shown = yaml.safe_load(text)
    [image] = shown["images"]
    [labels] = shown["labels"]
    relay = a_relay(
        cluster="example-cluster",
        project="example-project",
        version=labels["pairs"]["app.kubernetes.io/version"],
        image=f"{image['newName']}@{image['digest']}",
    )

    assert shown == kustomization(relay, example)
    assert built(example) == deployed(relay, tmp_path)


def test_each_settings_file_gets_an_overlay(tmp_path: Path) -> None:
    blue = settings(tmp_path, "blue", "path: projects/shop/locations/us-central2/clusters/b  # the first\n")
    red = settings(tmp_path, "red", 'zone: us-east5-a\n"path": "projects/other/locations/us-east5/clusters/r"\n')

    assert written(tmp_path, blue, red) == 0
    assert [environment(built(tmp_path / "relay" / each))["CLUSTER"] for each in ("blue", "red")] == ["blue", "red"]
    assert environment(built(tmp_path / "relay" / "red"))["GOOGLE_CLOUD_PROJECT"] == "shop"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("path: a/cluster\n", "path"),
        ("path: projects/p/locations/l/clusters/c\nzome: us-east5-a\n", "zome"),
        ("path: [\n", "cannot be parsed"),
    ],
)
def test_settings_that_are_wrong_are_named_and_nothing_is_written(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = settings(tmp_path, "blue", "path: projects/shop/locations/us-central2/clusters/b\n")

    assert written(tmp_path, good, settings(tmp_path, "red", text)) == 1
    told = capsys.readouterr().err
    assert told.startswith(f"{tmp_path / 'red.yaml'}: ")
    assert message in told
    assert not (tmp_path / "relay").exists()


@pytest.mark.parametrize(
    "image",
    [
        "us-central1-docker.pkg.dev/shop/tpu-slice-provisioner/relay:latest",
        f"us-central1-docker.pkg.dev/shop/tpu-slice-provisioner/relay:b-1@{DIGEST}",
        f"relay@{DIGEST}",
        f"us-central1-docker.pkg.dev/shop/relay@{DIGEST[:-1]}",
        f"us-central1-docker.pkg.dev/shop/relay@{DIGEST}\n",
        "",
    ],
)
def test_an_image_that_is_not_named_by_its_digest_is_refused(
    image: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert written(tmp_path, image=image) == 1
    assert "is not an image by its digest: REGISTRY/NAME@sha256:DIGEST" in capsys.readouterr().err


def test_an_image_of_a_registry_with_a_port_is_taken() -> None:
    assert Image.parse(f"localhost:5000/relay@{DIGEST}") == Image("localhost:5000/relay", DIGEST)


def test_the_pod_is_one_that_runs_without_privileges(tmp_path: Path) -> None:
    """What Pod Security's `restricted` asks for is tried on a real API server; this is what goes beyond it."""
    pod = the("Deployment", deployed(a_relay(), tmp_path))["spec"]["template"]["spec"]
    [only] = pod["containers"]

    assert only["securityContext"]["readOnlyRootFilesystem"] is True
    assert "volumes" not in pod, "it writes nowhere"
    assert pod["securityContext"]["runAsUser"] == 65532
    assert f"USER {pod['securityContext']['runAsUser']}:" in (ROOT / "relay" / "image" / "Dockerfile").read_text()
    assert {"hostNetwork", "hostPID", "hostIPC"}.isdisjoint(pod)


def test_nobody_may_connect_to_whatever_is_in_the_namespace() -> None:
    policy = the("NetworkPolicy")
    assert policy["metadata"]["namespace"] == NAMESPACE
    assert policy["spec"] == {"podSelector": {}, "policyTypes": ["Ingress"]}


def test_the_admission_policies_are_bound_and_deny() -> None:
    policies = [each for each in SHARED if each["kind"] == "ValidatingAdmissionPolicy"]
    bindings = [each["spec"] for each in SHARED if each["kind"] == "ValidatingAdmissionPolicyBinding"]

    assert [each["policyName"] for each in bindings] == [each["metadata"]["name"] for each in policies]
    assert all(each["validationActions"] == ["Deny"] for each in bindings)
    assert {each["spec"]["failurePolicy"] for each in policies} == {"Fail"}


def test_a_self_managed_clusters_relay_watches_groups_and_has_the_rights_for_them(tmp_path: Path) -> None:
    compute = "path: projects/shop/locations/us-central1\nzone: us-central1-c\ncompute:\n"
    compute += "  image: projects/p/global/images/i\n"
    assert written(tmp_path, settings(tmp_path, "own", compute)) == 0
    manifests = built(tmp_path / "relay" / "own")

    assert environment(manifests)["HOSTS_IN"] == "projects/shop/locations/us-central1"
    assert the("CustomResourceDefinition", manifests, "tpunodegroups.tpu.google.com")
    role = the("ClusterRoleBinding", manifests, "tpu-slice-provisioner-relay-self-managed")
    assert [each["name"] for each in role["subjects"]] == ["relay-own"]


def test_what_a_cluster_serves_is_known_to_its_relay_its_webhook_and_its_policy(tmp_path: Path) -> None:
    path = "path: projects/shop/locations/us-central1/clusters/own\nserve: [Deployment, Pod]\ngangs: multislice\n"
    none = settings(tmp_path, "other", path.partition("serve")[0])
    assert written(tmp_path, settings(tmp_path, "own", path), none) == 0
    own, other = tmp_path / "relay" / "own", tmp_path / "relay" / "other"

    for manifests in (built(own), built(own / "webhook")):
        assert {"name": "SERVE", "value": "Deployment,Pod"} in container(manifests)["env"]
    assert {"name": "GANGS", "value": "multislice"} in container(built(own / "webhook"))["env"]
    made, before = (list(yaml.safe_load_all(each.read_text())) for each in (own / POLICY.name, POLICY))
    for number, (name, value) in {0: ("serve", "['Deployment', 'Pod']"), 2: ("gangs", '"multislice"')}.items():
        expressions = serving(made[number])
        assert expressions.pop(name) == value
        assert expressions == {other: each for other, each in serving(before[number]).items() if other != name}
    assert made[1::2] == before[1::2]

    assert "SERVE" not in environment(built(other))
    assert "GANGS" not in {each["name"] for each in container(built(other / "webhook"))["env"]}
    assert (other / POLICY.name).read_text() == POLICY.read_text()


def serving(policy: Json) -> dict[str, str]:
    """Return the expressions of a policy's variables by their names."""
    return {each["name"]: each["expression"] for each in policy["spec"]["variables"]}


def test_the_relay_may_say_by_a_key_whose_hosts_it_closed_in_every_cluster(tmp_path: Path) -> None:
    clause = "key == 'google.com/tpu-slice-key' && variables.closedByRelay"
    for relay in (a_relay(), replace(a_relay(), hosts_in="projects/shop/locations/us-central1")):
        nodes = the("ValidatingAdmissionPolicy", deployed(relay, tmp_path), "tpu-slice-provisioner-relay-nodes")
        assert clause in nodes["spec"]["validations"][1]["expression"]


def test_a_relay_on_gke_has_nothing_of_groups(tmp_path: Path) -> None:
    manifests = deployed(a_relay(), tmp_path)
    assert "HOSTS_IN" not in environment(manifests)
    assert not [each for each in manifests if "self-managed" in each["metadata"]["name"]]
