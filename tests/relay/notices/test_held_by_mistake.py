"""Pods that the scheduling gate of gangs holds, and that can be of no gang, are let go, and their owners told."""

from collections.abc import Callable
from typing import Any

import pytest

from relay.notices.unserved import HELD_FOR
from relay.notices.unserved_pod import unserved
from tests.relay.gangs.objects import GATED
from tests.relay.notices.owners import SECOND, Told, without_chips
from tests.relay.notices.test_unserved import of_web
from tests.relay.objects import Json, group_pod, job_pod, only_pod, single_pod
from tpu_slices.domain.model.clusters import PodsOf
from tpu_slices.domain.model.gangs import GANG

HELD = {"schedulingGates": [{"name": GANG}]}


def held(made: Json) -> Json:
    made["spec"] |= HELD
    made["status"] = GATED
    return made


def test_the_held_pods_of_a_deployment_are_let_go_after_a_while_and_it_is_told(told: Told) -> None:
    told.lists(held(of_web(0)), held(of_web(1)))
    assert told.after(HELD_FOR - SECOND) == {}
    assert told.cluster.opened == []
    (message,) = told.after(2 * SECOND).values()
    assert message.startswith("its pods are of no gang")
    assert told.cluster.opened == ["research/web-1-0 pod-0", "research/web-1-1 pod-1"]
    (event,) = told.cluster.events.values()
    assert (event["reason"], event["involvedObject"]["kind"]) == ("NotInGang", "Deployment")


def test_held_pods_without_chips_are_let_go_too(told: Told) -> None:
    made = held(of_web(0))
    without_chips(made)
    told.lists(made)
    assert len(told.after(HELD_FOR)) == 1
    assert told.cluster.opened == ["research/web-1-0 pod-0"]


@pytest.mark.parametrize("made", [job_pod, group_pod, only_pod], ids=["Job", "group", "Job of one pod"])
def test_held_pods_that_may_be_of_a_gang_are_left_to_that(made: Callable[..., Any]) -> None:
    assert unserved(made(spec=HELD, status=GATED)) is None


def test_a_held_pod_that_is_served_by_itself_is_left_to_its_workload() -> None:
    read = unserved(held(single_pod()), serve=[PodsOf.DEPLOYMENT])
    assert read is None or not read.held
    assert unserved(held(single_pod())) is not None
