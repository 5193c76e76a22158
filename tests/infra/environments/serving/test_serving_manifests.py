"""Triton's manifests, as kubectl builds them for an environment from the base and the overlay that the build writes."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from infra.environments.triton.serving.__main__ import main
from infra.environments.triton.serving.overlay import BASE, KUSTOMIZATION, RELEASE
from tests.infra.relay.manifests import DIGEST, Json, built, the
from tests.infra.sources import ROOT

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

MODELS, NEXT = "gs://shop-models/model_repository", "gs://shop-models/next"
PINNED = f"us-docker.pkg.dev/shop/triton/tritonserver:26.08-py3@{DIGEST}"
SERVER = "triton-server"


def written(folder: Path, *options: str) -> int:
    arguments = ("--project", "shop", "--model-repository", MODELS, "--into", str(folder / "triton"))
    return main([*arguments, *options])


def environment(folder: Path, *options: str) -> list[Json]:
    assert written(folder, *options) == 0
    return built(folder / "triton")


@cache
def base() -> list[Json]:
    """Return the manifests without an environment's own."""
    return built(BASE)


def deployment(manifests: list[Json], version: str) -> Json:
    spec: Json = the("Deployment", manifests, f"{SERVER}-{version}")["spec"]
    return spec


def container(manifests: list[Json], version: str) -> Json:
    [only] = deployment(manifests, version)["template"]["spec"]["containers"]
    found: Json = only
    return found


def models(manifests: list[Json], version: str) -> str:
    [variable] = container(manifests, version)["env"]
    assert "--model-repository=$(MODEL_REPOSITORY)" in container(manifests, version)["args"]
    assert variable["name"] == "MODEL_REPOSITORY"
    value: str = variable["value"]
    return value


def weights(manifests: list[Json]) -> dict[str, int]:
    """Return the shares of the requests that name no version."""
    [by_weight] = (route for route in routes(manifests) if "headers" not in route["match"][0])
    return {each["destination"]["subset"]: each["weight"] for each in by_weight["route"]}


def routes(manifests: list[Json]) -> list[Json]:
    found: list[Json] = the("VirtualService", manifests)["spec"]["http"]
    return found


def fits(selector: Json, labels: Json) -> bool:
    return selector.items() <= labels.items()


def test_until_a_canary_is_asked_for_there_is_the_stable_version_only(tmp_path: Path) -> None:
    manifests = environment(tmp_path)
    assert {each: deployment(manifests, each)["replicas"] for each in ("stable", "canary")} == {
        "stable": 1,
        "canary": 0,
    }
    assert weights(manifests) == {"stable": 100, "canary": 0}
    assert (models(manifests, "stable"), container(manifests, "stable")["image"]) == (MODELS, RELEASE)


def test_a_canary_has_models_an_image_replicas_and_a_weight_of_its_own(tmp_path: Path) -> None:
    canary = ("--canary-model-repository", NEXT, "--canary-image", PINNED, "--canary-replicas", "2")
    manifests = environment(tmp_path, *canary, "--canary-weight", "10", "--replicas", "3")
    assert (deployment(manifests, "stable")["replicas"], deployment(manifests, "canary")["replicas"]) == (3, 2)
    assert (models(manifests, "stable"), models(manifests, "canary")) == (MODELS, NEXT)
    assert (container(manifests, "stable")["image"], container(manifests, "canary")["image"]) == (RELEASE, PINNED)
    assert weights(manifests) == {"stable": 90, "canary": 10}


def test_a_canary_has_what_it_does_not_have_of_its_own_from_the_stable_version(tmp_path: Path) -> None:
    manifests = environment(tmp_path, "--image", PINNED, "--canary-model-repository", NEXT)
    assert container(manifests, "canary")["image"] == PINNED
    assert weights(manifests) == {"stable": 100, "canary": 0}


def test_everything_is_in_the_namespace_that_was_named(tmp_path: Path) -> None:
    manifests = environment(tmp_path, "--namespace", "vision", "--account", "reader")
    assert the("Namespace", manifests)["metadata"]["name"] == "vision"
    assert {each["metadata"].get("namespace", "vision") for each in manifests} == {"vision"}
    assert deployment(manifests, "stable")["template"]["spec"]["serviceAccountName"] == "reader"
    assert the("ServiceAccount", manifests, "reader")["metadata"]["annotations"] == {
        "iam.gke.io/gcp-service-account": "reader@shop.iam.gserviceaccount.com"
    }


@pytest.mark.parametrize("namespace", ["no", "on", "null"])
def test_a_name_that_yaml_reads_otherwise_stays_a_name(tmp_path: Path, namespace: str) -> None:
    assert the("Namespace", environment(tmp_path, "--namespace", namespace))["metadata"]["name"] == namespace


def test_each_replica_has_as_many_gpus_as_asked_for(tmp_path: Path) -> None:
    manifests = environment(tmp_path, "--gpus", "2")
    assert [container(manifests, each)["resources"]["limits"]["nvidia.com/gpu"] for each in ("stable", "canary")] == [
        "2"
    ] * 2


def test_everybody_may_connect_but_where_ranges_are_named(tmp_path: Path) -> None:
    service = the("Service", environment(tmp_path / "open"), "istio-ingressgateway")
    assert "loadBalancerSourceRanges" not in service["spec"]
    ranges = ("--source-range", "192.0.2.0/24", "--source-range", "198.51.100.7/32")
    closed = the("Service", environment(tmp_path / "closed", *ranges), "istio-ingressgateway")
    assert closed["spec"]["loadBalancerSourceRanges"] == ["192.0.2.0/24", "198.51.100.7/32"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--image", "nvcr.io/nvidia/tritonserver:latest"], "is not an image by its digest"),
        (["--canary-image", "nvcr.io/nvidia/tritonserver:26.09-py3"], "is not an image by its digest"),
        (["--model-repository", "shop-models"], '"shop-models" is not a folder in a bucket'),
        (["--model-repository", "gs://shop-models/a b"], "is not a folder in a bucket"),
        (["--canary-weight", "10"], "needs a canary"),
        (["--canary-image", PINNED, "--canary-weight", "101"], "the canary's weight: 101"),
        (["--replicas", "0"], "replicas: 0 is not between 1 and 1000"),
        (["--gpus", "17"], "gpus: 17"),
        (["--namespace", "Vision"], "is not a name of a namespace"),
        (["--account", "reader@shop.iam.gserviceaccount.com"], "without its domain"),
        (["--source-range", "192.0.2.1/24"], '"192.0.2.1/24" is not a range'),
        (["--project", 'shop"\nresources: []'], "is not the id of a project"),
    ],
)
def test_what_cannot_be_is_told_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    assert written(tmp_path, *options) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "triton").exists()


def test_the_example_is_what_is_written_for_the_example_project(tmp_path: Path) -> None:
    bucket = "gs://example-bucket/model_repository"
    example = BASE.parent / "overlays" / "example"
    assert main(["--project", "example-project", "--model-repository", bucket, "--into", str(tmp_path)]) == 0
    lines, shown = ((folder / KUSTOMIZATION).read_text().splitlines() for folder in (tmp_path, example))
    assert [line for line in lines if "base" not in line] == [line for line in shown if "base" not in line]
    assert built(example) == built(tmp_path)


def test_the_base_by_itself_reads_nobodys_models() -> None:
    """`.invalid` is nobody's name (RFC 2606), and a bucket that has dots is given only to the owner of the name."""
    assert models(base(), "stable") == "gs://overlay.invalid/model_repository"
    assert container(base(), "stable")["image"] == RELEASE


def test_the_subsets_of_the_mesh_are_the_pods_of_the_two_versions() -> None:
    manifests = base()
    subsets = {each["name"]: each["labels"] for each in the("DestinationRule", manifests)["spec"]["subsets"]}
    pods = {each: deployment(manifests, each)["template"]["metadata"]["labels"] for each in ("stable", "canary")}
    assert {name: [pod for pod in pods if fits(subsets[name], pods[pod])] for name in subsets} == {
        "stable": ["stable"],
        "canary": ["canary"],
    }
    for version, labels in pods.items():
        assert fits(deployment(manifests, version)["selector"]["matchLabels"], labels)
        for kind in ("PodMonitoring", "PeerAuthentication"):
            assert fits(the(kind, manifests)["spec"]["selector"]["matchLabels"], labels)
        assert fits(the("Service", manifests, SERVER)["spec"]["selector"], labels)


def test_every_route_leads_to_the_service_and_a_subset_that_exist() -> None:
    manifests = base()
    subsets = {each["name"] for each in the("DestinationRule", manifests)["spec"]["subsets"]}
    ports = {each["port"] for each in the("Service", manifests, SERVER)["spec"]["ports"]}
    for destination in (each["destination"] for route in routes(manifests) for each in route["route"]):
        assert (destination["host"], destination["subset"] in subsets) == (SERVER, True)
        assert destination["port"]["number"] in ports
    assert the("VirtualService", manifests)["spec"]["gateways"] == [the("Gateway", manifests)["metadata"]["name"]]
    gateway = the("Deployment", manifests, "istio-ingressgateway")["spec"]["template"]["metadata"]["labels"]
    assert fits(the("Gateway", manifests)["spec"]["selector"], gateway)
    assert fits(the("Service", manifests, "istio-ingressgateway")["spec"]["selector"], gateway)


def test_who_names_a_version_gets_it_whatever_the_weights() -> None:
    by_name = [route for route in routes(base()) if "headers" in route["match"][0]]
    assert {
        route["match"][0]["headers"]["triton-version"]["exact"]: route["route"][0]["destination"]["subset"]
        for route in by_name
    } == {"stable": "stable", "canary": "canary"}
    assert routes(base())[: len(by_name)] == by_name, "the first route that fits is taken"


@pytest.mark.parametrize(
    ("path", "is_let_in"),
    [
        ("/v2", True),
        ("/v2/health/live", True),
        ("/v2/health/ready", True),
        ("/v2/models/densenet_onnx", True),
        ("/v2/models/densenet_onnx/ready", True),
        ("/v2/models/densenet_onnx/config", True),
        ("/v2/models/densenet_onnx/versions/1/infer", True),
        ("/v2/models/stats", True),
        ("/v2/models/densenet_onnx/trace/setting", False),
        ("/v2/trace/setting", False),
        ("/v2/logging", False),
        ("/v2/repository/index", False),
        ("/v2/repository/models/densenet_onnx/load", False),
        ("/v2/systemsharedmemory/region/a/register", False),
        ("/v2/cudasharedmemory/status", False),
        ("/v2/models/../repository/index", False),
        ("/metrics", False),
        ("/", False),
    ],
)
def test_only_the_requests_of_clients_are_let_in(path: str, is_let_in: bool) -> None:
    """Istio matches a regex with the whole path (RE2, whose syntax Python's is here)."""
    for route in routes(base()):
        [match] = route["match"]
        assert bool(re.fullmatch(match["uri"]["regex"], path)) == is_let_in


def test_metrics_are_read_at_the_port_that_is_left_out_of_the_mesh() -> None:
    manifests = base()
    [endpoint] = the("PodMonitoring", manifests)["spec"]["endpoints"]
    template = deployment(manifests, "stable")["template"]
    ports = {each["name"]: each["containerPort"] for each in container(manifests, "stable")["ports"]}
    excluded = template["metadata"]["annotations"]["traffic.sidecar.istio.io/excludeInboundPorts"]
    assert str(ports[endpoint["port"]]) == excluded == "8002"


def test_no_image_has_a_tag_that_moves() -> None:
    """`auto` is no image: the mesh's webhook replaces it, and without it the pod does not start."""
    images = {
        each["image"]
        for manifest in base()
        if manifest["kind"] == "Deployment"
        for each in manifest["spec"]["template"]["spec"]["containers"]
    }
    assert images == {RELEASE, "auto"}
    assert re.fullmatch(r"nvcr\.io/nvidia/tritonserver:\d\d\.\d\d-py3", RELEASE)


Peer = tuple[str, Json]
"""The namespace and the labels of a pod that connects, or of nobody in the cluster."""
GATEWAY: Peer = ("triton", {"app": "istio-ingressgateway", "istio": "ingressgateway"})
BESIDE: Peer = ("triton", {"app": "load-test"})
PROMETHEUS: Peer = ("gmp-system", {"app.kubernetes.io/name": "collector"})
STRANGER: Peer = ("default", {"app": "triton-server"})
INTERNET: Peer = ("", {})


@pytest.mark.parametrize(
    ("peer", "app", "ports"),
    [
        (INTERNET, "istio-ingressgateway", {80, 15021}),
        (INTERNET, SERVER, set()),
        (GATEWAY, SERVER, {8000, 8001}),
        (BESIDE, SERVER, {8000, 8001}),
        (PROMETHEUS, SERVER, {8002}),
        (STRANGER, SERVER, set()),
        (GATEWAY, "load-test", set()),
    ],
)
def test_a_pod_can_be_reached_by_those_that_need_it_and_nobody_else(peer: Peer, app: str, ports: set[int]) -> None:
    pods = [each["spec"]["template"] for each in base() if each["kind"] == "Deployment"]
    labels = next(
        (each["metadata"]["labels"] for each in pods if each["metadata"]["labels"]["app"] == app), {"app": app}
    )
    policies = [each["spec"] for each in base() if each["kind"] == "NetworkPolicy"]
    of_pod = [each for each in policies if fits(each["podSelector"].get("matchLabels", {}), labels)]
    assert of_pod, "whom no policy selects everybody may reach"
    rules = [rule for each in of_pod for rule in each.get("ingress", [])]
    reached = (rule["ports"] for rule in rules if "from" not in rule or any(is_of(each, peer) for each in rule["from"]))
    assert {each["port"] for some in reached for each in some} == ports


def is_of(source: Json, peer: Peer) -> bool:
    """Return whether a rule's source, with one selector as all of ours, means a pod."""
    namespace, labels = peer
    [(kind, selector)] = source.items()
    if kind == "podSelector":
        return namespace == "triton" and fits(selector.get("matchLabels", {}), labels)
    assert kind == "namespaceSelector"
    [named] = selector["matchExpressions"]
    assert (named["key"], named["operator"]) == ("kubernetes.io/metadata.name", "In")
    return namespace in named["values"]


@pytest.mark.parametrize("module", ["", ".sample_model", ".health"])
def test_a_build_needs_no_library_for_it(module: str) -> None:
    command = [sys.executable, "-S", "-m", f"infra.environments.triton.serving{module}", "--help"]
    done = subprocess.run(command, cwd=ROOT, env={}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
