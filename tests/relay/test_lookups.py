"""What is looked up for facts: the zones of volume claims, and nodes and pods before hosts are said to be vacant."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from relay.agenda import Demand
from relay.health import Health
from relay.lookups import (
    CLAIMS_AGAIN_AFTER,
    KEPT,
    PATIENCE,
    QUIET_AFTER_TROUBLE,
    Claims,
    Mounted,
    Vacancies,
    volume_of,
    zones_of,
)
from relay.objects import Pool
from relay.translate import hosts_of
from tests.builders import NOW, a_request, leaders_wait
from tests.relay.closing import SLICE, Site, leader, question
from tests.relay.objects import Json, jobset, pod, replicated_job
from tests.relay.watched import START, Watched, a_relay, looking_up
from tpu_slices.domain.model.facts import BoundClaim, Fact, HostsChanged, SlicesWanted
from tpu_slices.domain.planning.pool_labels import ATTEMPT_LABEL, SLICE_ID_LABEL
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.wire.bounds import CLAIMS_PER_FACT
from tpu_slices.wire.messages import encode_fact

ZONE = "topology.kubernetes.io/zone"
GKE_ZONE = "topology.gke.io/zone"


def claim(volume: str | None = "pv-1", phase: str = "Bound") -> Json:
    return {"spec": {"volumeName": volume} if volume else {}, "status": {"phase": phase}}


def volume(*terms: Json) -> Json:
    return {"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": list(terms)}}}}


def within(*zones: str, key: str = ZONE, operator: str = "In") -> Json:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(zones)}]}


@dataclass
class FakeVolumes:
    """Claims and volumes by name; each call takes `slow`, and raises `error` if it is set."""

    claims: dict[str, Json] = field(default_factory=lambda: {"data": claim()})
    volumes: dict[str, Json] = field(default_factory=lambda: {"pv-1": volume(within("us-central2-a"))})
    error: Exception | None = None
    slow: timedelta = timedelta()
    now: datetime = START
    calls: list[str] = field(default_factory=list)

    def claim(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        self._take_time(f"{namespace}/{name}")
        return self.claims.get(name)

    def volume(self, name: str) -> Mapping[str, Any] | None:
        self._take_time(name)
        return self.volumes.get(name)

    def _take_time(self, call: str) -> None:
        self.calls.append(call)
        self.now += self.slow
        if self.error is not None:
            raise self.error


@dataclass
class Setup:
    volumes: FakeVolumes = field(default_factory=FakeVolumes)

    def __post_init__(self) -> None:
        self.claims = Claims(self.volumes, lambda: self.volumes.now)

    def claims_of(self, *names: str) -> tuple[BoundClaim, ...]:
        """Complete demand whose leaders mount these claims; return the claims of its request."""
        (fact,) = self.claims.completed([leaders_wait(0)], Mounted({"slice": names}, self.volumes.now))
        assert isinstance(fact, SlicesWanted)
        return fact.requests[0].claims


def test_a_claim_that_is_bound_to_a_zone_is_added_to_the_request() -> None:
    setup = Setup()
    assert setup.claims_of("data") == (BoundClaim(name="data", zones=("us-central2-a",)),)
    assert setup.volumes.calls == ["research/data", "pv-1"]


def test_each_request_gets_the_claims_of_its_own_template() -> None:
    fact = leaders_wait(0, requests=(a_request(), a_request(replicated_job="other"), a_request(replicated_job="none")))
    mounted = Mounted({"slice": ("data", "new"), "other": ("data",)}, START)
    volumes = FakeVolumes(claims={"data": claim(), "new": claim(phase="Pending")})
    (completed,) = Setup(volumes).claims.completed([fact], mounted)
    assert isinstance(completed, SlicesWanted)
    assert [[each.name for each in request.claims] for request in completed.requests] == [["data"], ["data"], []]


def test_claims_are_looked_up_once_for_all_parts_of_a_jobsets_demand() -> None:
    setup, parts = Setup(), [leaders_wait(0), leaders_wait(1)]
    completed = setup.claims.completed(parts, Mounted({"slice": ("data",)}, START))
    named = [fact.requests[0].claims[0].name for fact in completed if isinstance(fact, SlicesWanted)]
    assert (named, setup.volumes.calls) == (["data", "data"], ["research/data", "pv-1"])


def test_demand_whose_claims_are_not_bound_is_unchanged() -> None:
    setup = Setup(FakeVolumes(claims={"data": claim(phase="Pending")}))
    assert setup.claims.completed([leaders_wait(0)], Mounted({"slice": ("data",)}, START)) == [leaders_wait(0)]


def test_a_claim_that_does_not_exist_is_named_without_zones_and_looked_up_each_time() -> None:
    setup = Setup(FakeVolumes(claims={}))
    assert setup.claims_of("data") == (BoundClaim(name="data", zones=()),)
    setup.volumes.claims["data"] = claim()
    assert setup.claims_of("data") == (BoundClaim(name="data", zones=("us-central2-a",)),)


@pytest.mark.parametrize(
    ("found", "name"),
    [
        (claim(), "pv-1"),
        (claim(phase="Pending"), None),
        (claim(phase="Lost"), None),
        (claim(volume=None), None),
        ({"spec": {"volumeName": "pv-1"}}, None),
    ],
)
def test_a_claims_volume_is_known_only_if_it_is_bound(found: Json, name: str | None) -> None:
    assert volume_of(found) == name


@pytest.mark.parametrize(
    ("found", "zones"),
    [
        (volume(within("a")), ("a",)),
        (volume(within("b", "a")), ("a", "b")),
        (volume(within("a", key=GKE_ZONE)), ("a",)),
        (volume(within("a"), within("b")), ("a", "b")),
        (
            volume({"matchExpressions": [*within("a", "b")["matchExpressions"], *within("b")["matchExpressions"]]}),
            ("b",),
        ),
        (volume(within("a"), within("n-1", key="kubernetes.io/hostname")), ()),
        (volume(within("a", operator="NotIn")), ()),
        (volume({}), ()),
        ({"spec": {}}, ()),
        (None, ()),
    ],
    ids=[
        "one",
        "a regional disk",
        "GKE's key",
        "either term",
        "both expressions",
        "a term that leaves the zone open",
        "not a list of zones",
        "empty term",
        "no affinity",
        "no such volume",
    ],
)
def test_a_volumes_zones_follow_from_its_node_affinity(found: Json | None, zones: tuple[str, ...]) -> None:
    assert zones_of(found) == zones


def test_look_ups_are_cached_for_some_minutes() -> None:
    setup = Setup()
    setup.volumes.claims["unbound"] = claim(phase="Pending")
    setup.claims_of("data", "unbound")
    calls = len(setup.volumes.calls)
    assert setup.claims_of("data", "unbound") == (BoundClaim(name="data", zones=("us-central2-a",)),)
    assert len(setup.volumes.calls) == calls
    setup.volumes.now += KEPT
    setup.claims_of("data", "unbound")
    assert len(setup.volumes.calls) == 2 * calls


def test_claims_that_cannot_be_looked_up_are_left_out_and_not_retried_at_once() -> None:
    setup = Setup(FakeVolumes(error=Temporary("refused: 403 Forbidden")))
    with capture_logs() as logs:
        assert setup.claims_of("data", "more") == ()
        assert setup.claims_of("data") == ()
    assert setup.volumes.calls == ["research/data"]
    assert [line["event"] for line in logs] == ["volume_claim.unknown"]
    setup.volumes.error = None
    setup.volumes.now += QUIET_AFTER_TROUBLE
    assert setup.claims_of("data") == (BoundClaim(name="data", zones=("us-central2-a",)),)


def test_a_slow_server_does_not_hold_up_the_facts() -> None:
    setup = Setup(FakeVolumes(slow=PATIENCE / 2))
    setup.claims_of(*(f"claim-{number}" for number in range(10)))
    assert setup.volumes.calls == ["research/claim-0", "research/claim-1"]


def test_the_number_of_claims_of_one_fact_is_limited() -> None:
    setup = Setup(FakeVolumes(claims={f"c-{number:03}": claim() for number in range(500)}))
    assert len(setup.claims_of(*(f"c-{number:03}" for number in range(500)))) == CLAIMS_PER_FACT


def test_claims_add_less_than_100_kb_to_a_message() -> None:
    names = tuple(f"{number:0253}" for number in range(20))
    zones = tuple(f"{number:063}" for number in range(20))
    volumes = FakeVolumes(dict.fromkeys(names, claim()), {"pv-1": volume(within(*zones))})
    mounted = Mounted({f"w-{number}": names for number in range(500)}, START)
    demand = leaders_wait(0, requests=tuple(a_request(replicated_job=f"w-{number}") for number in range(500)))
    (completed,) = Setup(volumes).claims.completed([demand], mounted)
    assert 0 < len(encode_fact(completed).data) - len(encode_fact(demand).data) < 100_000


def test_only_the_claims_of_waiting_leaders_are_looked_up(watched: Watched) -> None:
    mounts: Json = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}
    watched.see(jobset(spec={"replicatedJobs": [replicated_job(replicas=2)]}), pod(0, spec=mounts), pod(1))
    (due,) = (due for due in watched.queue.due(watched.now) if isinstance(due.subject, Demand))
    assert due.unknown == Mounted({"workers": ("data",)}, watched.now)


def test_demand_that_lacks_a_claim_is_repeated_until_there_is_one(watched: Watched) -> None:
    posted: list[Fact] = []
    volumes = FakeVolumes(claims={})
    look_up = looking_up(Claims(volumes, lambda: watched.now), Vacancies(Api()))
    relay = a_relay(watched.queue, lambda: watched.now, posted.extend, Health(lambda: watched.now), look_up)
    mounts: Json = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}
    watched.see(jobset(spec={"replicatedJobs": [replicated_job(replicas=1)]}), pod(0, spec=mounts))
    relay.turn()
    volumes.claims["data"] = claim()
    watched.pass_time(CLAIMS_AGAIN_AFTER.total_seconds())
    relay.turn()
    zones = [fact.requests[0].claims[0].zones for fact in posted if isinstance(fact, SlicesWanted)]
    assert zones == [(), ("us-central2-a",)]


def test_nothing_is_looked_up_for_leaders_that_mount_no_claims(watched: Watched) -> None:
    watched.see(jobset(), pod(0), pod(1))
    assert {due.unknown for due in watched.queue.due(watched.now)} == {None}


NODES = [f"{SLICE}-1-{number}" for number in range(4)]
SELECTOR = f"{SLICE_ID_LABEL}={SLICE},{ATTEMPT_LABEL}=1"


@dataclass
class Api:
    """The nodes and pods that the API server has."""

    nodes: set[str] = field(default_factory=lambda: {*NODES})
    bound: list[Json] = field(default_factory=list)
    listed: list[str] = field(default_factory=list)
    error: Exception | None = None
    leaders_error: Exception | None = None

    def claim(self, *_: str) -> Json | None:
        """Return nothing: no leader mounts a claim."""

    volume = claim

    def nodes_of(self, pool: Pool) -> set[str]:
        assert hosts_of(pool) == SELECTOR
        self.listed.append(SELECTOR)
        if self.error is not None:
            raise self.error
        return self.nodes

    def leaders_on(self, node: str) -> dict[str, str]:
        self.listed.append(node)
        if self.leaders_error is not None:
            raise self.leaders_error
        found = (pod["metadata"] for pod in self.bound if pod["spec"]["nodeName"] == node)
        return {metadata["uid"]: f"{metadata['namespace']}/{metadata['name']}" for metadata in found}


class Scene:
    """A relay that closes four hosts, and the pods that the API server has on them."""

    def __init__(self) -> None:
        self.site, self.api, self.posted = Site(), Api(), list[Fact]()
        watched = self.site.watched
        look_up = looking_up(Claims(self.api, lambda: watched.now), Vacancies(self.api))
        health = Health(lambda: watched.now)
        self.relay = a_relay(watched.queue, lambda: watched.now, self.posted.extend, health, look_up)

    def bind(self, pod: Json) -> None:
        """Bind a pod; its watch shows nothing of it yet."""
        self.api.bound.append(pod)

    def close(self) -> HostsChanged:
        """Ask for the hosts to be closed, and return the report of the time when all are."""
        self.relay.ask(question())
        self.site.patch()
        self.site.watched.pass_time(5)
        return self.report()

    def report(self) -> HostsChanged:
        """Return the last report."""
        self.relay.turn()
        return [fact for fact in self.posted if isinstance(fact, HostsChanged)][-1]


def test_it_is_answered_that_nobody_is_on_hosts_after_the_pods_of_each_were_listed() -> None:
    scene = Scene()
    report = scene.close()
    assert (report.answers, report.closed, report.occupants) == (NOW, 4, ())
    assert scene.api.listed[0] == SELECTOR
    assert sorted(scene.api.listed[1:]) == NODES


def test_a_leader_that_a_late_watch_has_not_shown_takes_the_answer_until_it_is_seen() -> None:
    scene = Scene()
    scene.bind(leader(2))
    with capture_logs() as lines:
        report = scene.close()
    assert (report.answers, report.closed, report.occupants) == (None, 4, ())
    assert [line["event"] for line in lines] == ["vacancy.uncertain"]
    assert f"research/{leader(2)['metadata']['name']}" in lines[0]["error"]

    scene.relay.ask(question())
    assert scene.report().answers is None
    scene.site.watched.see(leader(2))
    scene.relay.ask(question())
    report = scene.report()
    assert (report.answers, len(report.occupants)) == (NOW, 1)


@pytest.mark.parametrize("error", [Temporary("the API server does not answer"), Permanent("refused: 422")])
@pytest.mark.parametrize("which", ["error", "leaders_error"], ids=["nodes", "pods"])
def test_hosts_that_cannot_be_listed_are_not_said_to_be_empty(which: str, error: Exception) -> None:
    scene = Scene()
    setattr(scene.api, which, error)
    assert scene.close().answers is None
    setattr(scene.api, which, None)
    scene.relay.ask(question())
    assert scene.report().answers == NOW


def test_a_host_that_a_late_watch_has_not_shown_takes_the_answer_until_it_is_closed_too() -> None:
    scene = Scene()
    for number in (2, 3):
        scene.site.leave(number)
    with capture_logs() as lines:
        report = scene.close()
    assert (report.answers, report.joined, report.closed) == (None, 2, 2)
    assert [line["error"] for line in lines] == [f"the watch has not shown that node {NODES[2]} is one of the hosts"]

    scene.site.join(2, 3)
    scene.relay.ask(question())
    report = scene.close()
    assert (report.answers, report.joined, report.closed) == (NOW, 4, 4)


def test_a_pool_without_hosts_is_not_reported_while_the_api_server_has_some() -> None:
    scene = Scene()
    scene.site.leave(0, 1, 2, 3)
    scene.bind(leader(0))
    assert scene.close().answers is None

    scene.api.nodes.clear()  # now it is true
    scene.relay.ask(question())
    report = scene.report()
    assert (report.answers, report.joined) == (NOW, 0)


def test_a_pod_that_the_watch_has_shown_and_that_does_not_count_takes_no_answer() -> None:
    scene = Scene()
    stranger = leader(1)
    stranger["metadata"]["ownerReferences"] = []
    scene.bind(stranger)
    scene.site.watched.see(stranger)
    assert scene.close().answers == NOW


def test_nothing_is_listed_for_reports_that_answer_no_question() -> None:
    scene = Scene()
    scene.site.cordon(1)
    scene.site.watched.pass_time(15)
    assert scene.report().usable == 3
    assert scene.api.listed == []
