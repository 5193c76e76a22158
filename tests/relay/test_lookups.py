"""What is looked up for demand: the zones of the volume claims that leaders mount."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from relay.agenda import Demand
from relay.health import Health
from relay.lookups.threads import (
    KEPT,
    PATIENCE,
    QUIET_AFTER_TROUBLE,
    VOLUMES_AGAIN_AFTER,
    Mounted,
    VolumeLookups,
    volume_of,
    zones_of,
)
from relay.lookups.users import Looks
from tests.builders import a_request, leaders_wait
from tests.relay.objects import Json, jobset, pod, replicated_job
from tests.relay.test_users import Api
from tests.relay.watched import START, Watched, a_relay, looking_up
from tpu_slices.domain.model.facts import Fact, MountedVolume, SlicesWanted
from tpu_slices.ports.errors import Temporary
from tpu_slices.wire.bounds import VOLUMES_PER_FACT
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
    """PersistentVolumeClaims and volumes by name; each call takes `slow`, and raises `error` if it is set."""

    claims: dict[str, Json] = field(default_factory=lambda: {"data": claim()})
    volumes: dict[str, Json] = field(default_factory=lambda: {"pv-1": volume(within("us-central2-a"))})
    error: Exception | None = None
    slow: timedelta = timedelta()
    now: datetime = START
    calls: list[str] = field(default_factory=list)

    def volume_claim(self, namespace: str, name: str) -> Mapping[str, Any] | None:
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
        self.mounted = VolumeLookups(self.volumes, lambda: self.volumes.now)

    def volumes_of(self, *names: str) -> tuple[MountedVolume, ...]:
        """Complete demand whose leaders mount these; return the volumes of its request."""
        (fact,) = self.mounted.completed([leaders_wait(0)], Mounted({"slice": names}, self.volumes.now))
        assert isinstance(fact, SlicesWanted)
        return fact.requests[0].volumes


def test_a_volume_that_is_bound_to_a_zone_is_added_to_the_request() -> None:
    setup = Setup()
    assert setup.volumes_of("data") == (MountedVolume(name="data", zones=("us-central2-a",)),)
    assert setup.volumes.calls == ["research/data", "pv-1"]


def test_each_request_gets_the_volumes_of_its_own_template() -> None:
    fact = leaders_wait(0, requests=(a_request(), a_request(replicated_job="other"), a_request(replicated_job="none")))
    mounted = Mounted({"slice": ("data", "new"), "other": ("data",)}, START)
    volumes = FakeVolumes(claims={"data": claim(), "new": claim(phase="Pending")})
    (completed,) = Setup(volumes).mounted.completed([fact], mounted)
    assert isinstance(completed, SlicesWanted)
    assert [[each.name for each in request.volumes] for request in completed.requests] == [["data"], ["data"], []]


def test_volumes_are_looked_up_once_for_all_parts_of_a_jobsets_demand() -> None:
    setup, parts = Setup(), [leaders_wait(0), leaders_wait(1)]
    completed = setup.mounted.completed(parts, Mounted({"slice": ("data",)}, START))
    named = [fact.requests[0].volumes[0].name for fact in completed if isinstance(fact, SlicesWanted)]
    assert (named, setup.volumes.calls) == (["data", "data"], ["research/data", "pv-1"])


def test_demand_whose_volumes_are_not_bound_is_unchanged() -> None:
    setup = Setup(FakeVolumes(claims={"data": claim(phase="Pending")}))
    assert setup.mounted.completed([leaders_wait(0)], Mounted({"slice": ("data",)}, START)) == [leaders_wait(0)]


def test_a_volume_that_does_not_exist_is_named_without_zones_and_looked_up_each_time() -> None:
    setup = Setup(FakeVolumes(claims={}))
    assert setup.volumes_of("data") == (MountedVolume(name="data", zones=()),)
    setup.volumes.claims["data"] = claim()
    assert setup.volumes_of("data") == (MountedVolume(name="data", zones=("us-central2-a",)),)


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
def test_the_volume_of_a_persistent_volume_claim_is_known_only_if_it_is_bound(found: Json, name: str | None) -> None:
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
    setup.volumes_of("data", "unbound")
    calls = len(setup.volumes.calls)
    assert setup.volumes_of("data", "unbound") == (MountedVolume(name="data", zones=("us-central2-a",)),)
    assert len(setup.volumes.calls) == calls
    setup.volumes.now += KEPT
    setup.volumes_of("data", "unbound")
    assert len(setup.volumes.calls) == 2 * calls


def test_volumes_that_cannot_be_looked_up_are_left_out_and_not_retried_at_once() -> None:
    setup = Setup(FakeVolumes(error=Temporary("refused: 403 Forbidden")))
    with capture_logs() as logs:
        assert setup.volumes_of("data", "more") == ()
        assert setup.volumes_of("data") == ()
    assert setup.volumes.calls == ["research/data"]
    assert [line["event"] for line in logs] == ["volume_claim.unknown"]
    setup.volumes.error = None
    setup.volumes.now += QUIET_AFTER_TROUBLE
    assert setup.volumes_of("data") == (MountedVolume(name="data", zones=("us-central2-a",)),)


def test_a_slow_server_does_not_hold_up_the_facts() -> None:
    setup = Setup(FakeVolumes(slow=PATIENCE / 2))
    setup.volumes_of(*(f"claim-{number}" for number in range(10)))
    assert setup.volumes.calls == ["research/claim-0", "research/claim-1"]


def test_the_number_of_volumes_of_one_fact_is_limited() -> None:
    setup = Setup(FakeVolumes(claims={f"c-{number:03}": claim() for number in range(500)}))
    assert len(setup.volumes_of(*(f"c-{number:03}" for number in range(500)))) == VOLUMES_PER_FACT


def test_volumes_add_less_than_100_kb_to_a_message() -> None:
    names = tuple(f"{number:0253}" for number in range(20))
    zones = tuple(f"{number:063}" for number in range(20))
    volumes = FakeVolumes(dict.fromkeys(names, claim()), {"pv-1": volume(within(*zones))})
    mounted = Mounted({f"w-{number}": names for number in range(500)}, START)
    demand = leaders_wait(0, requests=tuple(a_request(replicated_job=f"w-{number}") for number in range(500)))
    (completed,) = Setup(volumes).mounted.completed([demand], mounted)
    assert 0 < len(encode_fact(completed).data) - len(encode_fact(demand).data) < 100_000


def test_only_the_volumes_of_waiting_leaders_are_looked_up(watched: Watched) -> None:
    mounts: Json = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}
    watched.see(jobset(spec={"replicatedJobs": [replicated_job(replicas=2)]}), pod(0, spec=mounts), pod(1))
    (due,) = (due for due in watched.queue.due(watched.now) if isinstance(due.subject, Demand))
    assert due.unknown == Mounted({"workers": ("data",)}, watched.now)


def test_demand_that_lacks_a_volume_is_repeated_until_there_is_one(watched: Watched) -> None:
    posted: list[Fact] = []
    volumes = FakeVolumes(claims={})
    look_up = looking_up(VolumeLookups(volumes, lambda: watched.now), Looks(Api(), lambda: watched.now))
    relay = a_relay(watched.queue, lambda: watched.now, posted.extend, Health(lambda: watched.now), look_up)
    mounts: Json = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}
    watched.see(jobset(spec={"replicatedJobs": [replicated_job(replicas=1)]}), pod(0, spec=mounts))
    relay.turn()
    volumes.claims["data"] = claim()
    watched.pass_time(VOLUMES_AGAIN_AFTER.total_seconds())
    relay.turn()
    zones = [fact.requests[0].volumes[0].zones for fact in posted if isinstance(fact, SlicesWanted)]
    assert zones == [(), ("us-central2-a",)]


def test_nothing_is_looked_up_for_leaders_that_mount_no_volumes(watched: Watched) -> None:
    watched.see(jobset(), pod(0), pod(1))
    assert {due.unknown for due in watched.queue.due(watched.now)} == {None}
