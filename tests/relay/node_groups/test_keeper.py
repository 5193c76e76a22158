"""A TPUNodeGroup is held by a finalizer before anything is bought for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
from structlog.testing import capture_logs

from relay import translate
from relay.cluster_cache import ClusterCache
from relay.node_groups.keeper import RETRY_AFTER, NodeGroupKeeper, not_held
from relay.objects import Workload
from tests.builders import CLUSTER, NOW
from tests.relay.node_groups.objects import FakeGroups, Json, group
from tests.relay.objects import jobset, read_jobset
from tpu_slices.domain.model.node_groups import FINALIZER
from tpu_slices.domain.model.slices import OwnerKind
from tpu_slices.domain.planning.tpu_operator import FINALIZERS
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.wire.readers import READERS

SECOND = timedelta(seconds=1)


def read(obj: Json) -> Workload:
    seen = translate.workload(READERS[OwnerKind.TPU_NODE_GROUP], obj)
    assert seen is not None
    return seen


@dataclass
class Site:
    """A group that is seen, the API server, and a clock."""

    groups: FakeGroups = field(default_factory=lambda: FakeGroups(group(held=False)))
    now: datetime = NOW
    unknown: bool = False

    def __post_init__(self) -> None:
        self.keeper = NodeGroupKeeper(self.needed, self.groups, lambda: self.now)

    def needed(self) -> list[Workload]:
        if self.unknown:
            raise Temporary("the relay's fact queue does not answer")
        cache = ClusterCache(CLUSTER)
        if self.groups.stored is not None:
            cache.put(read(self.groups.stored))
        return [*not_held(cache)]

    @property
    def finalizers(self) -> list[str]:
        assert self.groups.stored is not None
        found: list[str] = self.groups.stored["metadata"].get("finalizers", [])
        return found


@pytest.fixture
def site() -> Site:
    return Site()


def test_a_new_group_is_held(site: Site) -> None:
    site.keeper.look()
    assert site.finalizers == [FINALIZER]


def test_what_is_held_is_left_alone(site: Site) -> None:
    for _ in range(3):
        site.keeper.look()
    assert site.groups.written == 1


def test_finalizers_of_others_stay(site: Site) -> None:
    site.groups.stored = group(held=False, metadata={"finalizers": ["example.com/theirs"]})
    site.keeper.look()
    assert site.finalizers == ["example.com/theirs", FINALIZER]


def test_what_tpu_operator_holds_is_left_to_it_until_it_is_handed_over(site: Site) -> None:
    site.groups.stored = group(held=False, metadata={"finalizers": [*FINALIZERS]})
    with capture_logs() as logs:
        site.keeper.look()
    assert (site.groups.written, [each["event"] for each in logs]) == (0, ["node_group.hold_failed"])
    assert "adopt it with `slices adopt`" in logs[0]["error"]
    site.groups.stored = group(held=False, metadata={"finalizers": ["example.com/theirs"]})
    site.now += timedelta(minutes=2)
    site.keeper.look()
    assert site.finalizers == ["example.com/theirs", FINALIZER]


def test_a_group_that_is_being_deleted_is_not_held_any_more(site: Site) -> None:
    site.groups.stored = group(held=False, deleted=True)
    site.keeper.look()
    assert site.finalizers == []


def test_a_group_that_cannot_be_parsed_is_held_too(site: Site) -> None:
    site.groups.stored = group(held=False, spec={"topology": 4})
    site.keeper.look()
    assert site.finalizers == [FINALIZER]


@pytest.mark.parametrize("error", [Temporary("403 Forbidden"), Permanent("422 Unprocessable Entity")])
def test_a_refusal_is_logged_once_and_tried_again_with_rising_pauses(site: Site, error: Exception) -> None:
    site.groups.error = error
    with capture_logs() as lines:
        for _ in range(20):
            site.keeper.look()
            site.now += SECOND
    assert [line["event"] for line in lines] == ["node_group.hold_failed"]
    site.groups.error = None
    site.now += 60 * SECOND
    site.keeper.look()
    assert site.finalizers == [FINALIZER]


def test_a_patch_without_effect_is_sent_again_after_a_while(site: Site) -> None:
    site.keeper.look()
    site.groups.stored = group(held=False)
    site.keeper.look()
    assert site.finalizers == []
    site.now += RETRY_AFTER
    site.keeper.look()
    assert site.finalizers == [FINALIZER]


def test_nothing_is_done_while_it_is_not_known_what_there_is(site: Site) -> None:
    site.unknown = True
    site.keeper.look()
    assert site.groups.written == 0


def test_only_node_groups_are_held() -> None:
    cache = ClusterCache(CLUSTER)
    seen = read_jobset(jobset())
    assert seen is not None
    cache.put(seen)
    assert not_held(cache) == ()
