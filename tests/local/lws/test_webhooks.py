"""What the webhooks make of new pods and LeaderWorkerSets, and the CRD."""

from __future__ import annotations

from typing import Any

import pytest

from infra.local.clients.objects import Object
from infra.local.clients.reviews import Refused
from infra.local.lws.manifests import WEBHOOKS, configurations, crd
from infra.local.lws.pods import placed
from tests.local.lws.builders import EXCLUSIVE, LABEL, POOL, lws


def pod(name: str = "serve-1", *, leads: bool = True, exclusive: bool = False) -> Object:
    labels = {f"{LABEL}name": "serve"} | ({f"{LABEL}worker-index": "0"} if leads else {f"{LABEL}group-index": "1"})
    metadata = {"name": name, "namespace": "default", "labels": labels}
    containers = [{"name": "main", "env": [{"name": "OWN", "value": "1"}, {"name": "LWS_GROUP_SIZE", "value": "9"}]}]
    return {
        "metadata": metadata | {"annotations": {f"{LABEL}size": "4"} | ({EXCLUSIVE: POOL} if exclusive else {})},
        "spec": {"containers": containers, "subdomain": "serve"},
    }


def told_pod(name: str, told: Object, *, leads: bool) -> Object:
    made = pod(name, leads=leads)
    made["metadata"]["annotations"] |= told
    return made


def test_a_leader_gets_the_index_and_the_key_of_its_group() -> None:
    labels = [placed(pod(name))["metadata"]["labels"] for name in ("serve-1", "serve-12")]
    assert [each[f"{LABEL}group-index"] for each in labels] == ["1", "12"]
    assert labels[0][f"{LABEL}group-key"] != labels[1][f"{LABEL}group-key"]


def test_a_worker_gets_its_index() -> None:
    assert placed(pod("serve-1-3", leads=False))["metadata"]["labels"][f"{LABEL}worker-index"] == "3"


def test_its_containers_know_their_place() -> None:
    (container,) = placed(pod("serve-1-3", leads=False))["spec"]["containers"]
    assert {each["name"]: each["value"] for each in container["env"]} == {
        "LWS_LEADER_ADDRESS": "serve-1.serve.default",
        "LWS_GROUP_SIZE": "4",
        "LWS_WORKER_INDEX": "3",
        "OWN": "1",
    }


def test_an_exclusive_leader_has_its_domain_for_its_group_alone() -> None:
    made = placed(pod(exclusive=True))
    key = made["metadata"]["labels"][f"{LABEL}group-key"]
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    (own,) = made["spec"]["affinity"]["podAffinity"][required]
    (others,) = made["spec"]["affinity"]["podAntiAffinity"][required]
    assert own["topologyKey"] == others["topologyKey"] == POOL
    assert own["labelSelector"]["matchExpressions"][0] == {
        "key": f"{LABEL}group-key",
        "operator": "In",
        "values": [key],
    }
    assert [each["operator"] for each in others["labelSelector"]["matchExpressions"]] == ["Exists", "NotIn"]


@pytest.mark.parametrize(
    ("kind", "size", "subgroups"),
    [
        ("LeaderWorker", 4, ["0", "0", "1", "1"]),
        ("LeaderWorker", 5, ["0", "0", "0", "1", "1"]),
        ("LeaderExcluded", 5, [None, "0", "0", "1", "1"]),
    ],
)
def test_pods_are_counted_off_to_subgroups(kind: str, size: int, subgroups: list[str | None]) -> None:
    told = {f"{LABEL}size": str(size), f"{LABEL}subgroup-size": "2", f"{LABEL}subgroup-policy-type": kind}
    names = ["serve-1", *(f"serve-1-{index}" for index in range(1, size))]
    made = [placed(told_pod(name, told, leads=name == "serve-1"))["metadata"]["labels"] for name in names]
    assert [each.get(f"{LABEL}subgroup-index") for each in made] == subgroups


def test_an_exclusive_subgroup_has_its_domain_for_itself() -> None:
    told = {f"{LABEL}subgroup-size": "2", f"{LABEL}subgroup-exclusive-topology": POOL}
    leader = placed(told_pod("serve-1", told, leads=True))
    worker = placed(told_pod("serve-1-1", told | {f"{LABEL}leader-name": "serve-1"}, leads=False))
    assert leader["spec"]["affinity"] == worker["spec"]["affinity"]


def test_a_new_one_gets_upstreams_defaults() -> None:
    spec = lws(template={"restartPolicy": "Default"})["spec"]
    assert spec["leaderWorkerTemplate"]["restartPolicy"] == "None"
    assert spec["rolloutStrategy"]["rollingUpdateConfiguration"]["maxUnavailable"] == 1
    assert spec["networkConfig"] == {"subdomainPolicy": "Shared"}


@pytest.mark.parametrize(
    ("parts", "named"),
    [
        ({"template": {"volumeClaimTemplates": [{}]}}, "volumeClaimTemplates"),
        ({"spec": {"networkConfig": {"subdomainPolicy": "UniquePerReplica"}}}, "subdomainPolicy UniquePerReplica"),
        ({"spec": {"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 1}}}}, "partition"),
        ({"spec": {"rolloutStrategy": {"rollingUpdateConfiguration": {"maxSurge": "25%"}}}}, "maxSurge"),
    ],
)
def test_what_is_not_implemented_is_refused(parts: dict[str, Any], named: str) -> None:
    with pytest.raises(Refused, match=f"^{named} of LeaderWorkerSets is not implemented locally$") as refused:
        lws(**parts)
    assert refused.value.code == 501


def test_the_api_server_calls_every_webhook() -> None:
    (configuration,) = configurations("https://127.0.0.1:1", b"PEM").values()
    urls = {webhook["clientConfig"]["url"].removeprefix("https://127.0.0.1:1") for webhook in configuration["webhooks"]}
    assert urls == set(WEBHOOKS)


def test_its_crd_has_what_kubectl_scale_reads() -> None:
    (version,) = crd()["spec"]["versions"]
    assert version["subresources"]["scale"]["specReplicasPath"] == ".spec.replicas"
    assert crd()["spec"]["names"]["shortNames"] == ["lws"]
