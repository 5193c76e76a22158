"""Gangs on a real API server, with the controllers of JobSet and LeaderWorkerSet: whose pods have the gate."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.infra.admission.judges import options_of
from tests.infra.admission.pods import IDLE, a_pod, gates_of, of_jobset
from tests.infra.admission.settings import BINDING, DEFINED, GANGS, GANGS_BINDING, OFF
from tests.infra.admission.workloads import ASKED, MULTISLICE, a_jobset, a_lone_job, a_set, a_template, labelled
from tests.kubernetes.admission.created import created
from tests.kubernetes.admission.labelling import LISTS, create_the_old_ones, outcomes, replaced, stored
from tests.kubernetes.cluster import Cluster, Json, with_controller
from tests.relay.webhook.process import Site, site
from tpu_slices.domain.model.facts import EXCLUSIVE, GROUP_EXCLUSIVE
from tpu_slices.domain.model.gangs import GANG
from tpu_slices.domain.planning.host_labels import NODE_POOL
from tpu_slices.wire.bounds import TEMPLATES
from tpu_standins.clients.api import Api
from tpu_standins.clients.errors import ApiError
from tpu_standins.controllers.catalogue import JOBSET, LWS
from tpu_standins.ports import free_ports
from tpu_standins.testing.parts import add_node, items, waited
from tpu_standins.testing.places import namespace_for

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]


def manifest(settings: Mapping[str, str] = OFF, **pods: str) -> str:
    """Return the manifest with these settings of gangs; `pods`: expressions of the policy that judges pods."""
    made: list[Json] = json.loads(json.dumps([DEFINED, BINDING, GANGS, GANGS_BINDING]))
    for policy, given in ((made[0], pods), (made[2], settings)):
        for variable in policy["spec"]["variables"]:
            variable["expression"] = given.get(variable["name"], variable["expression"])
    return yaml.safe_dump_all(made)


def apply(cluster: Cluster, settings: Mapping[str, str] = OFF, **pods: str) -> None:
    said = cluster.kubectl("apply", "--server-side", "-f", "-", stdin=manifest(settings, **pods))
    assert said.code == 0, said.error
    by_default = {"job-0"} if settings == MULTISLICE else set[str]()
    waited(lambda: stored(cluster, a_jobset(replicas=2)) == by_default, "the settings of gangs to count")
    waited(lambda: stored(cluster, a_jobset(gang="all")) == {"job-0"}, "the policy of gangs to count")
    groups = a_set(a_template(), gang="all")  # the API server patches objects of a new kind some seconds later
    waited(lambda: stored(cluster, groups) == {"workerTemplate"}, "the policy to know the kind LeaderWorkerSet")


@pytest.fixture(scope="module")
def api(cluster: Cluster) -> Iterator[Api]:
    with (
        with_controller(cluster, JOBSET),
        with_controller(cluster, LWS),
        closing(Api.of(cluster.plane.kubeconfig)) as connected,
    ):
        yield connected
        for plural in ("jobsets", "leaderworkersets", "jobs"):
            for each in connected.list(plural)["items"]:
                with suppress(ApiError):  # whoever made it took it along
                    connected.delete(plural, each["metadata"]["namespace"], each["metadata"]["name"])
        waited(lambda: not connected.list("leaderworkersets")["items"], "the end of all LeaderWorkerSets")
    cluster.unpin()


@pytest.fixture
def where(cluster: Cluster, api: Api, request: pytest.FixtureRequest) -> str:
    """A namespace under the policies."""
    apply(cluster)
    return namespace_for(api, request.node.name)


def in_namespace(workload: Json, namespace: str) -> Json:
    return {**workload, "metadata": {**workload["metadata"], "namespace": namespace}}


def test_the_templates_that_the_table_says_get_the_label(cluster: Cluster, api: Api) -> None:
    """Those that exist are replaced, with nothing of what is there; JobSet's webhooks refuse what is immutable."""
    cluster.unpin()
    namespace = namespace_for(api, "gangs-as-the-table-says")
    create_the_old_ones(cluster, namespace)
    found: dict[str, set[str] | str] = {}
    for settings in (OFF, MULTISLICE):
        apply(cluster, settings)
        found |= outcomes(cluster, settings, namespace)
    assert found == {case.name: set(case.gets) for case in ASKED}


def test_a_jobset_of_many_replicated_jobs_is_judged(cluster: Cluster, where: str) -> None:
    """The API server allows expressions only so much."""
    many = in_namespace(a_jobset(*[a_template() for _ in range(TEMPLATES)], gang="all", suspend=True), where)
    created_now = cluster.post(LISTS["JobSet"].format(where), many)
    assert created_now.object, created_now.refused
    again = replaced(cluster, f"{LISTS['JobSet'].format(where)}/llama", many)
    for found in (created_now.object, again.body):
        assert labelled(found) == {f"job-{number}" for number in range(TEMPLATES)}


@pytest.mark.parametrize("way", [("apply",), ("apply", "--server-side")], ids=" ".join)
@pytest.mark.parametrize("workload", [a_jobset(gang="all"), a_lone_job(gang="all"), a_set(a_template(), gang="all")])
def test_to_apply_a_manifest_again_changes_nothing(
    cluster: Cluster, where: str, workload: Json, way: tuple[str, ...]
) -> None:
    specs = []
    for _ in range(2):
        said = cluster.kubectl(*way, "-f", "-", stdin=json.dumps(in_namespace(workload, where)))
        assert said.code == 0, said.error
        [now] = read(cluster, where, workload["kind"])
        assert labelled(now)
        specs.append(without_empty(now["spec"]))
    assert specs[0] == specs[1]


def without_empty(value: Any) -> Any:
    """Return JSON without the empty maps that the webhooks of JobSet and LeaderWorkerSet add, or do not."""
    if isinstance(value, list):
        return [without_empty(each) for each in value]
    if not isinstance(value, dict):
        return value
    kept = {key: without_empty(each) for key, each in value.items()}
    return {key: each for key, each in kept.items() if each != {}}


def read(cluster: Cluster, namespace: str, kind: str) -> list[Json]:
    found: list[Json] = cluster.api.read(LISTS[kind].format(namespace))["items"]
    return found


def test_all_pods_of_a_gang_have_the_gate_and_one_that_is_made_anew_has_it_again(api: Api, where: str) -> None:
    api.create("jobsets", in_namespace(of_two_hosts(a_jobset(gang="all", replicas=2)), where))
    waited(all_held(api, where, 4), "four pods with the gate")
    [lost, *_] = items(api, "pods", where)
    api.delete("pods", where, lost["metadata"]["name"])
    waited(lambda: lost["metadata"]["uid"] not in uids(api, where) and all_held(api, where, 4)(), "another with it")


def of_two_hosts(jobset: Json) -> Json:
    for each in jobset["spec"]["replicatedJobs"]:
        each["template"]["spec"] |= {"parallelism": 2, "completions": 2}
    return jobset


def uids(api: Api, namespace: str) -> set[str]:
    return {each["metadata"]["uid"] for each in items(api, "pods", namespace)}


def all_held(api: Api, namespace: str, number: int) -> Callable[[], bool]:
    """Return whether there are so many pods, and all have the gate alone."""

    def hold() -> bool:
        pods = items(api, "pods", namespace)
        return len(pods) == number and all(gates_of(each) == (GANG,) for each in pods)

    return hold


def test_a_jobset_that_is_resumed_is_held_anew(api: Api, where: str) -> None:
    name = api.create("jobsets", in_namespace(a_jobset(gang="all"), where))["metadata"]["name"]
    waited(all_held(api, where, 1), "a pod with the gate")
    api.patch("jobsets", where, name, {"spec": {"suspend": True}})
    waited(lambda: not items(api, "pods", where), "no pods")
    api.patch("jobsets", where, name, {"spec": {"suspend": False}})
    waited(all_held(api, where, 1), "a pod with the gate")


def test_followers_that_wait_for_their_leader_need_no_gate(api: Api, where: str) -> None:
    """With exclusive placement there are leaders alone before these have nodes."""
    jobset = of_two_hosts(a_jobset(gang="all", replicas=2, annotations={EXCLUSIVE: NODE_POOL}))
    api.create("jobsets", in_namespace(jobset, where))
    waited(all_held(api, where, 2), "two leaders with the gate")
    for leader in items(api, "pods", where):
        open_and_bind(api, leader)
    waited(lambda: len(items(api, "pods", where)) == 4, "their followers")
    assert all(not gates_of(each) for each in items(api, "pods", where))


def open_and_bind(api: Api, pod: Json) -> None:
    """Open a pod, and bind it to a node of its own, as the relay and the scheduler do."""
    namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    api.patch("pods", namespace, name, {"spec": {"schedulingGates": None}})
    add_node(api, f"{name}-host", f"{name}-pool")
    target = {"apiVersion": "v1", "kind": "Node", "name": f"{name}-host"}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
    api.call("POST", f"/api/v1/namespaces/{namespace}/pods/{name}/binding", body)


@pytest.mark.parametrize("exclusive", [False, True], ids=["not exclusive", "exclusive"])
def test_the_pods_of_a_leader_worker_set_have_the_gate(api: Api, where: str, exclusive: bool) -> None:
    groups = a_set(a_template(restartPolicy="Always"), gang="all")
    groups["spec"]["leaderWorkerTemplate"]["size"] = 2
    if exclusive:
        groups["metadata"]["annotations"][GROUP_EXCLUSIVE] = NODE_POOL
    api.create("leaderworkersets", in_namespace(groups, where))
    waited(all_held(api, where, 2 if exclusive else 4), "the pods of two groups with the gate")


def test_the_gate_of_a_template_holds_without_the_policies(cluster: Cluster, api: Api, where: str) -> None:
    cluster.unpin()
    api.create("jobsets", in_namespace(a_jobset(a_template(schedulingGates=[{"name": GANG}])), where))
    waited(all_held(api, where, 1), "a pod with the gate")


def test_a_pod_with_the_gate_keeps_it_when_the_policies_go_and_new_ones_have_none(
    cluster: Cluster, api: Api, where: str
) -> None:
    api.create("jobsets", in_namespace(a_jobset(gang="all"), where))
    waited(all_held(api, where, 1), "a pod with the gate")
    cluster.unpin()
    [held] = items(api, "pods", where)
    assert gates_of(held) == (GANG,)
    api.delete("pods", where, held["metadata"]["name"])
    waited(lambda: [gates_of(each) for each in items(api, "pods", where)] == [()], "another without")


def test_while_the_policy_cannot_judge_no_pod_of_a_gang_is_created_and_afterwards_it_is(
    cluster: Cluster, api: Api, where: str
) -> None:
    apply(cluster, locationHint="string(1 / 0)")
    waited(lambda: "division by zero" in created(cluster, of_jobset()).refused, "the policy to fail")
    api.create("jobsets", in_namespace(a_jobset(gang="all"), where))
    waited(lambda: "division by zero" in str(items(api, "events", where)), "an Event of the Job that says why")
    assert not items(api, "pods", where)
    apply(cluster)
    waited(all_held(api, where, 1), "the pod with its gate")


def test_a_pod_of_a_tenant_gets_no_gate_that_is_no_claim_and_loses_it_only_where_the_tenant_may_change_pods(
    cluster: Cluster, api: Api, where: str
) -> None:
    label = {GANG: "true"}
    for pod in (a_pod(IDLE, labels=label), a_pod(labels=label), of_jobset(labels={GANG: "yes"})):
        made = created(cluster, pod).object
        assert made is not None
        assert gates_of(made) == ()
    api.create("jobs", in_namespace(a_lone_job(gang="all"), where))
    waited(all_held(api, where, 4), "the pods with the gate")
    name = items(api, "pods", where)[0]["metadata"]["name"]
    api.patch("pods", where, name, {"spec": {"schedulingGates": None}})
    with pytest.raises(ApiError, match="only deletion is allowed"):
        api.patch("pods", where, name, {"spec": {"schedulingGates": [{"name": GANG}]}})


@pytest.fixture
def webhook(cluster: Cluster, tmp_path: Path) -> Iterator[Site]:
    """Where the webhook runs in place of the policies."""
    cluster.unpin()
    with site(cluster.plane.kubeconfig, tmp_path) as made:
        yield made
    waited(lambda: stored(cluster, a_jobset(gang="all")) == set(), "the webhook to be called no more")


def test_the_webhook_labels_the_same(cluster: Cluster, api: Api, webhook: Site) -> None:
    namespace = namespace_for(api, "gangs-as-the-webhook-says")
    create_the_old_ones(cluster, namespace)
    found: dict[str, set[str] | str] = {}
    for settings in (OFF, MULTISLICE):
        (port,) = free_ports(1)
        with webhook.replica(port, GANGS=options_of(settings).gangs):
            webhook.call(port, conditions=True)
            waited(lambda: stored(cluster, a_jobset(gang="all")) == {"job-0"}, "the webhook to be called")
            found |= outcomes(cluster, settings, namespace)
            webhook.uncall()
        waited(lambda: stored(cluster, a_jobset(gang="all")) == set(), "the webhook to be called no more")
    assert found == {case.name: set(case.gets) for case in ASKED}


def test_without_an_answer_of_the_webhook_gangs_are_refused_and_all_else_goes_on(
    cluster: Cluster, api: Api, webhook: Site
) -> None:
    namespace = namespace_for(api, "gangs-without-the-webhook")
    (port,) = free_ports(1)
    with webhook.replica(port):
        webhook.call(port, conditions=True)
        waited(lambda: stored(cluster, a_jobset(gang="all")) == {"job-0"}, "the webhook to be called")
        gang = api.create("jobsets", in_namespace(a_jobset(gang="all", suspend=True), namespace))["metadata"]["name"]
    for refused in (a_jobset(gang="all"), a_jobset(replicas=2), a_lone_job(gang="all")):
        waited(lambda: stored(cluster, refused) is None, "a refusal")  # noqa: B023 - at once
    for allowed in (a_jobset(), a_jobset(gang="none", replicas=2), a_lone_job(), a_set(a_template())):
        assert stored(cluster, allowed) == set()
    api.patch("jobsets", namespace, gang, {"spec": {"suspend": False}})
    api.delete("jobsets", namespace, gang)
    webhook.uncall()
