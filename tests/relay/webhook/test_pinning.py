"""How the relay finds out by what pods are pinned: by a pod that is judged and not stored."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from infra.kubernetes.overlay import WEBHOOK as WEBHOOKS
from relay.notices.pinning import POD, PinningCheck
from tests.infra.admission.judges import by_policy, by_webhook
from tests.infra.admission.settings import OFF
from tests.infra.relay.test_webhook_manifests import CALLED
from tpu_slices.domain.model.facts import Pinning
from tpu_slices.ports.errors import Permanent, Temporary

WEBHOOK: str = CALLED["webhooks"][0]["name"]
UNREACHED = f'500 Internal error occurred: failed calling webhook "{WEBHOOK}": connection refused'


@dataclass
class Plane:
    """An API server; `judge` is what becomes of a new pod."""

    judge: Callable[[Mapping[str, Any]], Mapping[str, Any] | str]
    policy: bool = False

    def tried(self, pod: Mapping[str, Any]) -> Mapping[str, Any] | str:
        return self.judge(pod)

    def has_policy(self) -> bool:
        return self.policy


def seen(plane: Plane) -> Pinning | None:
    check = PinningCheck(plane)
    check.look()
    return check.seen


def test_a_pod_that_the_policy_judges_shows_it() -> None:
    assert seen(Plane(lambda pod: by_policy(dict(pod), OFF), policy=True)) is Pinning.POLICY


def test_a_pod_that_the_webhook_judges_shows_it() -> None:
    assert seen(Plane(lambda pod: by_webhook(dict(pod), OFF))) is Pinning.WEBHOOK


@pytest.mark.parametrize("policy", [False, True])
def test_a_pod_that_nothing_judges_shows_it_whatever_is_bound(policy: bool) -> None:
    """A policy that is bound but switched off by a condition of somebody's pins nothing."""
    assert seen(Plane(lambda pod: pod, policy=policy)) is Pinning.NOTHING


def test_a_webhook_that_does_not_answer_is_told_from_those_of_others() -> None:
    assert seen(Plane(lambda _: UNREACHED)) is Pinning.REFUSED
    assert seen(Plane(lambda _: UNREACHED.replace(WEBHOOK, "mpod.kb.io"))) is None


@pytest.mark.parametrize("error", [Temporary("403 Forbidden"), Permanent("422 Invalid")])
def test_where_it_cannot_be_tried_it_is_not_known_and_no_longer_what_it_was(error: Exception) -> None:
    plane = Plane(lambda pod: by_webhook(dict(pod), OFF))
    check = PinningCheck(plane)
    check.look()
    assert check.seen is Pinning.WEBHOOK

    def refuse(_: Mapping[str, Any]) -> str:
        raise error

    plane.judge = refuse
    check.look()
    assert check.seen is None


def test_the_roll_out_tries_the_same_pod() -> None:
    assert json.loads((WEBHOOKS.parent / "pod-with-chips.json").read_text()) == dict(POD)


def test_the_pod_is_one_that_a_restricted_namespace_takes() -> None:
    (container,) = POD["spec"]["containers"]
    assert POD["spec"]["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["capabilities"]["drop"] == ["ALL"]
