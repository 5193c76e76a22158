"""What judges pods: the policy's expressions, and the webhook for API servers that do not evaluate such policies."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from relay.webhook.placing import Options, patch_of
from relay.webhook.pods import Pod
from tests.infra.admission.pods import Json
from tests.infra.admission.policy import patched
from tests.infra.admission.settings import POLICY
from tpu_slices.domain.model.clusters import PodsOf
from tpu_slices.domain.model.gangs import Gangs

Judge = Callable[[Json, Mapping[str, str]], Json]
"""From a pod and the settings of a case to the pod as it is stored."""


def by_policy(pod: Json, settings: Mapping[str, str]) -> Json:
    return POLICY.admitted(pod, **settings)


def by_webhook(pod: Json, settings: Mapping[str, str]) -> Json:
    for operation in patch_of(Pod.read(pod, options_of(settings).serve), options_of(settings)):
        pod = patched(pod, operation)
    return pod


def options_of(expressions: Mapping[str, str]) -> Options:
    """Return settings of the policy, which are expressions, as the webhook has them."""
    return Options(
        strips_capacity=json.loads(expressions.get("stripSpotAndReservation", "false")),
        location_hint=json.loads(expressions.get("locationHint", '""')),
        gangs=Gangs(json.loads(expressions.get("gangs", '"none"'))),
        serve=tuple(map(PodsOf, json.loads(expressions.get("serve", "[]").replace("'", '"')))),
    )


JUDGES: Mapping[str, Judge] = {"policy": by_policy, "webhook": by_webhook}
