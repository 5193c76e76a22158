"""Volume claims of waiting leaders: what they are bound to is said with the want."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from relay.volume_claims import (
    CLAIMS_PER_FACT,
    KEPT,
    PATIENCE,
    QUIET_AFTER_TROUBLE,
    Claims,
    Mounted,
    volume_of,
    zones_of,
)
from tests.builders import a_request, leaders_wait
from tests.relay.objects import Json, jobset, pod, replicated_job
from tests.relay.watched import START, Watched
from tpu_slices.domain.model.facts import BoundClaim, Fact, Heartbeat, SlicesWanted
from tpu_slices.domain.model.slices import WorkloadUid
from tpu_slices.ports.errors import Temporary
from tpu_slices.wire.messages import encode_fact

UID = WorkloadUid("uid-llama")
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
    """Claims and volumes by name; each call takes `slow`, and raises `trouble` where there is any."""

    claims: dict[str, Json] = field(default_factory=lambda: {"data": claim()})
    volumes: dict[str, Json] = field(default_factory=lambda: {"pv-1": volume(within("us-central2-a"))})
    trouble: Exception | None = None
    slow: timedelta = timedelta()
    now: datetime = START
    asked: list[str] = field(default_factory=list)

    def claim(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        self._take_time(f"{namespace}/{name}")
        return self.claims.get(name)

    def volume(self, name: str) -> Mapping[str, Any] | None:
        self._take_time(name)
        return self.volumes.get(name)

    def _take_time(self, asked: str) -> None:
        self.asked.append(asked)
        self.now += self.slow
        if self.trouble is not None:
            raise self.trouble


@dataclass
class Setup:
    volumes: FakeVolumes = field(default_factory=FakeVolumes)

    def __post_init__(self) -> None:
        self.claims = Claims(self.volumes, lambda: self.volumes.now)

    def announced_state(self, *names: str) -> tuple[BoundClaim, ...]:
        """Complete a want whose leaders mount these claims; what is said of them."""
        (fact,) = self.claims.complete([leaders_wait(0)], {UID: {"slice": names}})
        assert isinstance(fact, SlicesWanted)
        return fact.requests[0].claims


def test_a_claim_that_is_bound_to_a_zone_is_told() -> None:
    setup = Setup()
    assert setup.announced_state("data") == (BoundClaim(name="data", zones=("us-central2-a",)),)
    assert setup.volumes.asked == ["research/data", "pv-1"]


def test_each_template_is_told_its_own_claims() -> None:
    fact = leaders_wait(0, requests=(a_request(), a_request(replicated_job="other"), a_request(replicated_job="none")))
    mounted: Mounted = {UID: {"slice": ("data", "new"), "other": ("data",)}}
    (announced_state,) = Setup().claims.complete([fact], mounted)
    assert isinstance(announced_state, SlicesWanted)
    assert [[each.name for each in request.claims] for request in announced_state.requests] == [["data"], ["data"], []]


def test_facts_without_claims_are_left_as_they_are() -> None:
    setup = Setup()
    facts: list[Fact] = [Heartbeat(count=0, digest="d"), leaders_wait(0)]
    assert setup.claims.complete(facts, {UID: {}}) == facts
    assert setup.volumes.asked == []


@pytest.mark.parametrize(
    ("found", "name"),
    [
        (claim(), "pv-1"),
        (claim(phase="Pending"), None),
        (claim(phase="Lost"), None),
        (claim(volume=None), None),
        (None, None),
        ({"spec": {"volumeName": "pv-1"}}, None),
    ],
)
def test_a_claim_is_bound_when_it_says_so_and_to_what(found: Json | None, name: str | None) -> None:
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
def test_the_zones_that_a_volume_can_be_reached_from(found: Json | None, zones: tuple[str, ...]) -> None:
    assert zones_of(found) == zones


def test_what_was_looked_up_is_known_for_some_minutes() -> None:
    setup = Setup()
    setup.volumes.claims["unbound"] = claim(phase="Pending")
    setup.announced_state("data", "unbound")
    asked = len(setup.volumes.asked)
    assert setup.announced_state("data", "unbound") == (BoundClaim(name="data", zones=("us-central2-a",)),)
    assert len(setup.volumes.asked) == asked
    setup.volumes.now += KEPT
    setup.announced_state("data", "unbound")
    assert len(setup.volumes.asked) == 2 * asked


def test_claims_that_cannot_be_read_are_not_told_and_not_asked_for_again_at_once() -> None:
    setup = Setup(FakeVolumes(trouble=Temporary("refused: 403 Forbidden")))
    with capture_logs() as logs:
        assert setup.announced_state("data", "more") == ()
        assert setup.announced_state("data") == ()
    assert setup.volumes.asked == ["research/data"]
    assert [line["event"] for line in logs] == ["volume_claim.unknown"]
    setup.volumes.trouble = None
    setup.volumes.now += QUIET_AFTER_TROUBLE
    assert setup.announced_state("data") == (BoundClaim(name="data", zones=("us-central2-a",)),)


def test_a_slow_server_does_not_hold_up_the_facts() -> None:
    setup = Setup(FakeVolumes(slow=PATIENCE / 2))
    setup.announced_state(*(f"claim-{number}" for number in range(10)))
    assert setup.volumes.asked == ["research/claim-0", "research/claim-1"]


def test_of_very_many_claims_some_are_looked_at() -> None:
    setup = Setup(FakeVolumes(claims={f"c-{number:03}": claim() for number in range(500)}))
    assert len(setup.announced_state(*(f"c-{number:03}" for number in range(500)))) == CLAIMS_PER_FACT


def test_what_is_told_of_claims_leaves_a_message_small_enough() -> None:
    names = tuple(f"{number:0253}" for number in range(20))
    zones = tuple(f"{number:063}" for number in range(20))
    volumes = FakeVolumes(dict.fromkeys(names, claim()), {"pv-1": volume(within(*zones))})
    wanted = leaders_wait(0, requests=tuple(a_request(replicated_job=f"w-{number}") for number in range(500)))
    (announced_state,) = Setup(volumes).claims.complete(
        [wanted], {UID: {f"w-{number}": names for number in range(500)}}
    )
    assert 0 < len(encode_fact(announced_state).data) - len(encode_fact(wanted).data) < 100_000


def test_the_claims_are_those_of_the_leaders_that_wait(watched: Watched) -> None:
    mounts: Json = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}
    watched.see(jobset(spec={"replicatedJobs": [replicated_job(replicas=2)]}), pod(0, spec=mounts), pod(1))
    assert watched.queue.cache.claims(WorkloadUid("u-1")) == {"workers": ("data",)}
    watched.lose(pod(0))
    assert watched.queue.cache.claims(WorkloadUid("u-1")) == {"workers": ()}
