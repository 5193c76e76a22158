"""Of each pod of the golden table the relay tells how far it reaches: policy, webhook or neither judged it."""

from __future__ import annotations

import pytest

from tests.infra.admission.case import STATIC, Case
from tests.infra.admission.cases import CASES
from tests.infra.admission.judges import JUDGES
from tests.infra.admission.pods import of_jobset
from tpu_slices.domain.model.facts import Reach
from tpu_slices.wire.workloads import leader_with

BY_ITS_AUTHOR = {
    "on static hosts, together": Reach.STATIC,
    "on static hosts, spread": Reach.STATIC,
    "requiring nothing at all": Reach.ANY,
}
"""Pods whose own requirements leave static hosts alone, or none at all, as no node meets an empty term."""
PLACED = [case for case in CASES if case.hosts and not case.refused]
"""The pods that the policy and the webhook judge."""


@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize("case", PLACED, ids=lambda case: case.name)
def test_a_pod_that_was_judged_may_come_to_its_own_hosts_or_to_static_ones_alone(case: Case, judge: str) -> None:
    judged = JUDGES[judge](case.pod, case.settings)
    placed = Reach.STATIC if case.hosts == STATIC else Reach.OWN
    assert leader_with(judged, "", 0).reach is BY_ITS_AUTHOR.get(case.name, placed)


def test_a_pod_that_nobody_judged_may_come_to_any() -> None:
    assert leader_with(of_jobset(), "", 0).reach is Reach.ANY
