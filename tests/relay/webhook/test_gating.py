"""How the relay finds out what the API server makes of gangs: by a pod and two JobSets that are not stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from infra.preflight.answers import Answer, Denied, Found, Missing
from infra.preflight.findings import Severity
from infra.preflight.pinning import gating_findings
from relay.notices.gating import ANNOTATED, MULTISLICE, POD_OF_A_GANG, GatingCheck
from relay.webhook.gangs import patch_of
from tests.infra.admission.judges import JUDGES
from tests.infra.admission.policy import patched
from tests.infra.admission.settings import GANGS_POLICY, OFF
from tpu_slices.domain.model.gangs import Gangs, Gating
from tpu_slices.ports.errors import Permanent

Json = Mapping[str, Any]


def unchanged(obj: Json) -> Json | str:
    return obj


def by_policy(gangs: Gangs) -> Callable[[Json], Json]:
    return lambda jobset: GANGS_POLICY.admitted(dict(jobset), None, gangs=f'"{gangs}"')


def by_webhook(gangs: Gangs) -> Callable[[Json], Json]:
    def judged(jobset: Json) -> Json:
        made = dict(jobset)
        for operation in patch_of(made, None, gangs):
            made = patched(made, operation)
        return made

    return judged


OF_JOBSETS = {"policy": by_policy, "webhook": by_webhook}


@dataclass
class Plane:
    """An API server; what becomes of new pods and JobSets."""

    pod: Callable[[Json], Json | str] = unchanged
    jobset: Callable[[Json], Json | str] = unchanged
    refused: list[Exception] = field(default_factory=list)

    def tried(self, pod: Json) -> Json | str:
        return self.pod(pod)

    def tried_jobset(self, jobset: Json) -> Json | str:
        if self.refused:
            raise self.refused[0]
        return self.jobset(jobset)


def seen(plane: Plane) -> Gating | None:
    check = GatingCheck(plane)
    check.look()
    return check.seen


@pytest.mark.parametrize("by", JUDGES)
@pytest.mark.parametrize(("gangs", "gating"), [(Gangs.NONE, Gating.ANNOTATED), (Gangs.MULTISLICE, Gating.MULTISLICE)])
def test_what_policies_and_webhook_make_of_gangs_is_seen(by: str, gangs: Gangs, gating: Gating) -> None:
    assert seen(Plane(lambda pod: JUDGES[by](dict(pod), OFF), OF_JOBSETS[by](gangs))) is gating


def test_pods_alone_show_that_nothing_labels_templates() -> None:
    assert seen(Plane(lambda pod: JUDGES["policy"](dict(pod), OFF))) is Gating.PODS


def test_where_nothing_judges_pods_nothing_is_held_whatever_is_labelled() -> None:
    assert seen(Plane(jobset=by_policy(Gangs.MULTISLICE))) is Gating.NOTHING


def test_where_jobset_is_not_installed_or_a_webhook_does_not_answer_it_is_not_known() -> None:
    assert seen(Plane(refused=[Permanent("404 not found")])) is None
    assert seen(Plane(pod=lambda _: "500 failed calling webhook")) is None


def test_preflight_warns_of_what_is_not_as_it_is_set() -> None:
    made = [Found(dict(each)) for each in (POD_OF_A_GANG, ANNOTATED, MULTISLICE)]
    [finding] = gating_findings(Gangs.MULTISLICE, *made)
    assert finding.severity is Severity.WARNING
    assert "The setting `gangs` is multislice" in finding.message
    assert [*gating_findings(Gangs.NONE, *made)] == []


@pytest.mark.parametrize(("answer", "told"), [(Denied("Forbidden"), 1), (Missing(), 0)])
def test_preflight_says_what_could_not_be_tried_and_nothing_of_what_is_missing(answer: Answer, told: int) -> None:
    made = Found(dict(POD_OF_A_GANG))
    assert len([*gating_findings(Gangs.MULTISLICE, made, answer, answer)]) == told
