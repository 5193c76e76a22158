"""The admission check with Kueue's own controller: a workload gets quota first, then its slices, then its pods."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import count, islice

import pytest

from relay.kueue import findings
from relay.kueue.objects import CheckState
from tests.cluster.asking import done, path
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.queues.checks import (
    CHECK,
    Slices,
    an_admission_check,
    answered,
    says,
    stop,
)
from tests.kubernetes.queues.queued import API, QUEUE_LABEL, Json, Team, a_cluster, a_jobset, applied, with_kueue
from tests.relay.objects import OPTED_OUT
from tpu_slices.domain.model.facts import Toleration
from tpu_slices.domain.model.gangs import GANG
from tpu_slices.domain.model.reasons import Reason
from tpu_standins.kubernetes.programs import Programs
from tpu_standins.prerequisites import Tools
from tpu_standins.testing.waiting import until

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

SPOT = {"key": "cloud.google.com/gke-spot", "operator": "Equal", "value": "true", "effect": "NoSchedule"}
THEN = "2026-01-01T00:00:00Z"
KUEUE = "kueue.x-k8s.io/v1beta2"


def flavor(name: str, **spec: Json | list[Json]) -> Json:
    return {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": name}, "spec": spec}


def queue(chips: int = 16, spot: int = 0, checks: tuple[str, ...] = (CHECK,)) -> Json:
    quotas = [
        {"name": name, "resources": [{"name": "google.com/tpu", "nominalQuota": quota}]}
        for name, quota in (("v5e", chips), ("v5e-spot", spot))
    ]
    spec: Json = {
        "namespaceSelector": {},
        "resourceGroups": [{"coveredResources": ["google.com/tpu"], "flavors": quotas}],
        "stopPolicy": "None",
        "preemption": {"withinClusterQueue": "LowerPriority"},
    }
    strategy = {"admissionChecksStrategy": {"admissionChecks": [{"name": each} for each in checks]}}
    return {
        "apiVersion": KUEUE,
        "kind": "ClusterQueue",
        "metadata": {"name": "research"},
        "spec": spec | (strategy if checks else {}),
    }


OBJECTS: tuple[Json, ...] = (
    an_admission_check(),
    flavor("v5e", nodeLabels={"team.example.com/kind": "reserved"}),
    flavor("v5e-spot", nodeLabels={"cloud.google.com/gke-spot": "true"}, tolerations=[SPOT]),
    {
        "apiVersion": KUEUE,
        "kind": "LocalQueue",
        "metadata": {"name": "team-a", "namespace": "default"},
        "spec": {"clusterQueue": "research"},
    },
    {"apiVersion": KUEUE, "kind": "WorkloadPriorityClass", "metadata": {"name": "high"}, "value": 100},
)


@pytest.fixture(scope="module")
def cluster(programs: Programs, tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with a_cluster(programs, tools, tmp_path_factory.mktemp("checks")) as one, with_kueue(one):
        applied(one, *OBJECTS, queue())
        yield one


@pytest.fixture
def team(cluster: Cluster) -> Iterator[Team]:
    one = Team(cluster)
    yield one
    one.clear()


@pytest.fixture
def slices(team: Team, monkeypatch: pytest.MonkeyPatch) -> Iterator[Slices]:
    monkeypatch.setattr(findings, "KEEPS_QUOTA", timedelta(0))
    applied(team.cluster, queue())
    one = Slices(team.cluster)
    with answered(team.cluster, one):
        yield one


def uid_of(team: Team, jobset: str) -> str:
    return str(team.cluster.api.read(path("jobsets", "default", jobset))["metadata"]["uid"])


def test_a_jobset_has_quota_and_no_pods_until_its_slices_stand(team: Team, slices: Slices) -> None:
    team.submit("first")
    says(team, "first", CheckState.PENDING, "0 of 1 slices stand.")
    assert team.holds("first", "QuotaReserved")
    assert team.suspended("first")
    assert team.pods("first") == []
    [reservation] = slices.reserved.values()
    assert list(slices.reserved) == [uid_of(team, "first")]
    assert reservation.added["workers"].labels == (("team.example.com/kind", "reserved"),)
    assert "0 of 1 slices stand." in until(lambda: told(team, "first"), "an Event on the JobSet")
    slices.stand.add("first")
    team.runs("first")
    assert team.pods("first")[0]["spec"]["nodeSelector"]["team.example.com/kind"] == "reserved"
    team.succeeds("first")
    team.remove("first")
    until(lambda: slices.reserved == {}, "no reservation")


def told(team: Team, jobset: str) -> str:
    """Return what Kueue says of the check on the JobSet."""
    about = f"involvedObject.kind=JobSet,involvedObject.name={jobset},reason=UpdatedAdmissionCheck"
    found = team.cluster.api.read(path("events", "default"), fieldSelector=about)["items"]
    return " ".join(each["message"] for each in found)


def test_a_check_that_says_retry_gives_the_quota_to_the_next_and_comes_back_after_it(
    team: Team, slices: Slices
) -> None:
    """Kueue may give it to the same one first: the functions go on saying what they say."""
    team.submit("stuck")
    says(team, "stuck", CheckState.PENDING, "0 of 1")
    team.submit("next")
    team.waits("next", "16 more needed")

    def next_has_quota() -> bool:
        slices.told("stuck", Reason.LET_GO_WITH_GANG)
        return team.holds("next", "QuotaReserved")

    until(next_has_quota, lambda: f"quota of the next, not {team.workload('next')}")
    team.evicted("stuck", "AdmissionCheck")
    says(team, "next", CheckState.PENDING, "0 of 1")
    says(team, "stuck", CheckState.PENDING, "Previously: Retry")
    until(lambda: list(slices.reserved) == [uid_of(team, "next")], "the reservation")
    slices.stand |= {"stuck", "next"}
    team.runs("next")
    team.succeeds("next")
    team.runs("stuck")
    team.remove("stuck", "next")


def test_one_that_runs_loses_its_slices_and_comes_back_on_another_flavor(team: Team, slices: Slices) -> None:
    slices.stand.add("moves")
    team.submit("moves")
    assert team.flavor("moves") == "v5e"
    team.runs("moves")
    applied(team.cluster, queue(chips=0, spot=16))
    slices.stand.remove("moves")
    slices.told("moves", Reason.LET_GO_WITH_GANG)
    team.evicted("moves", "AdmissionCheck")
    slices.stand.add("moves")
    until(lambda: team.flavor("moves") == "v5e-spot", "another flavor")
    assert any(
        Toleration(key="cloud.google.com/gke-spot", value="true", effect="NoSchedule") in added.tolerations
        for reservations in slices.ever
        for each in reservations.values()
        for added in each.added.values()
    )
    team.runs("moves")
    until(lambda: all("cloud.google.com/gke-spot" in selector(each) for each in team.pods("moves")), "new pods")
    assert selector(team.pods("moves")[0])["team.example.com/kind"] == "reserved", "JobSet takes nothing away"
    team.remove("moves")


def test_what_a_queue_lost_while_it_was_stopped_is_judged_anew(team: Team, slices: Slices) -> None:
    """Kueue takes the quota away without resetting the check: with quota again it would admit by what stood once."""
    with_another(team)
    slices.stand.add("stale")
    team.submit("stale")
    says(team, "stale", CheckState.READY)
    stop(team, "Hold")
    until(lambda: team.condition("stale", "QuotaReserved")["status"] == "False", "no quota")
    says(team, "stale", CheckState.PENDING, "no quota any more")
    slices.stand.remove("stale")
    stop(team, "None")
    until(lambda: team.holds("stale", "QuotaReserved"), "quota again")
    settle(team, "other", "stale")
    says(team, "stale", CheckState.PENDING, "0 of 1 slices stand.")
    assert not team.holds("stale", "Admitted")
    slices.stand.add("stale")
    team.runs("stale")
    team.remove("stale")


def test_without_the_relay_kueue_admits_by_what_stood_once(team: Team) -> None:
    """Why it writes without quota, too."""
    applied(team.cluster, queue())
    slices = Slices(team.cluster, {"stale"})
    with answered(team.cluster, slices):
        with_another(team)
        team.submit("stale")
        says(team, "stale", CheckState.READY)
    stop(team, "Hold")
    until(lambda: team.condition("stale", "QuotaReserved")["status"] == "False", "no quota")
    settle(team, "other", "stale")
    stop(team, "None")
    team.runs("stale")
    team.remove("stale")


def test_a_queue_that_loses_the_check_admits_what_waited_for_it(team: Team, slices: Slices) -> None:
    """Gates hold its pods, if they are of a gang, as the next test has it."""
    team.submit("let-in")
    says(team, "let-in", CheckState.PENDING, "0 of 1")
    applied(team.cluster, queue(checks=()))
    team.runs("let-in")
    until(lambda: slices.reserved == {}, "no reservation")
    team.remove("let-in")


@pytest.mark.usefixtures("slices")
def test_gates_hold_every_pod_of_a_gang_that_kueue_admits_without_the_check(team: Team) -> None:
    applied(team.cluster, queue(chips=32))
    team.submit("gang", jobs=2, schedulingGates=[{"name": GANG}])
    says(team, "gang", CheckState.PENDING, "0 of 1")
    applied(team.cluster, queue(chips=32, checks=()))
    team.runs("gang", pods=8)
    until(lambda: {why_not_scheduled(each) for each in team.pods("gang")} == {"SchedulingGated"}, "gated pods")
    assert team.holds("gang", "Admitted")
    team.remove("gang")


def test_one_that_is_preempted_as_it_waits_is_no_longer_reserved_for(team: Team, slices: Slices) -> None:
    team.submit("low")
    says(team, "low", CheckState.PENDING, "0 of 1")
    team.submit("high", priority="high")
    team.evicted("low", "Preempted")
    says(team, "high", CheckState.PENDING, "0 of 1")
    until(lambda: list(slices.reserved) == [uid_of(team, "high")], "the reservation")
    slices.stand |= {"low", "high"}
    team.runs("high")
    team.succeeds("high")
    team.runs("low")
    team.remove("low", "high")


def test_what_no_wait_can_mend_is_deactivated(team: Team, slices: Slices) -> None:
    team.submit("refused")
    says(team, "refused", CheckState.PENDING, "0 of 1")
    slices.told("refused", Reason.IMPOSSIBLE_SHAPE)
    team.evicted("refused", "DeactivatedDueToAdmissionCheck")
    assert team.workload("refused")["spec"]["active"] is False
    assert team.suspended("refused")
    team.remove("refused")


def test_a_workload_that_others_change_all_the_time_is_written_to_nevertheless(team: Team, slices: Slices) -> None:
    team.submit("busy")
    says(team, "busy", CheckState.PENDING, "0 of 1")
    slices.stand.add("busy")
    numbers = count()

    def runs() -> bool:
        for number in islice(numbers, 5):
            name = team.workload("busy")["metadata"]["name"]
            patch = {"metadata": {"labels": {"number": str(number)}}}
            done(team.cluster.api.patch(f"{API}/namespaces/default/workloads/{name}", patch))
        return len(team.pods("busy")) == 4

    until(runs, "its pods")
    team.remove("busy")


def selector(pod: Json) -> dict[str, str]:
    found: dict[str, str] = pod["spec"]["nodeSelector"]
    return found


def why_not_scheduled(pod: Json) -> str:
    """Return why a pod has no host, as its condition says; empty: it has one, or nothing is said."""
    conditions = pod["status"].get("conditions", [])
    return next((str(each.get("reason")) for each in conditions if each["type"] == "PodScheduled"), "")


def with_another(team: Team) -> None:
    """Have another check of the queue, which a test answers."""
    applied(team.cluster, an_admission_check("other", "example.com/other"))
    active = {"type": "Active", "status": "True", "reason": "A", "message": "", "lastTransitionTime": THEN}
    done(team.cluster.api.patch(f"{API}/admissionchecks/other/status", {"status": {"conditions": [active]}}))
    applied(team.cluster, queue(checks=(CHECK, "other")))


def settle(team: Team, check: str, jobset: str) -> None:
    """Let another check of a JobSet's be Ready."""
    workload = team.workload(jobset)
    checks = [
        each | ({"state": "Ready", "lastTransitionTime": THEN} if each["name"] == check else {})
        for each in workload["status"]["admissionChecks"]
    ]
    where = f"{API}/namespaces/default/workloads/{workload['metadata']['name']}/status"
    version = workload["metadata"]["resourceVersion"]
    answer = team.cluster.api.patch(
        where, {"metadata": {"resourceVersion": version}, "status": {"admissionChecks": checks}}
    )
    if answer.code == 409:
        settle(team, check, jobset)
    else:
        done(answer)


@pytest.mark.usefixtures("slices")
def test_a_workload_that_opted_out_is_not_held(team: Team) -> None:
    """Whoever gives a queue the check has it for what runs on static slices, too."""
    body = a_jobset("static", {QUEUE_LABEL: "team-a"})
    template = body["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    template["metadata"] = {"annotations": {OPTED_OUT: "true"}}
    done(team.cluster.api.post(path("jobsets", "default"), body))
    team.runs("static")
    says(team, "static", CheckState.READY, "no slices")
    team.remove("static")
