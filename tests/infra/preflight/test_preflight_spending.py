"""What would cost money unseen: alerts that notify nobody, clusters whose chips nothing limits."""

from __future__ import annotations

from typing import Any

import pytest

from infra.preflight.answers import Answer, Denied, Found, Missing, Unreachable
from infra.preflight.findings import Severity, warning
from infra.preflight.spending import channel_findings, limit_findings
from tests.infra.preflight.clouds import CHANNELS, changed, settings
from tpu_slices.domain.model.clusters import Allowed, Policy

[CHANNEL] = CHANNELS["notificationChannels"]
EMAIL = changed(CHANNEL, type="email", labels={"email_address": "ops@example.com"})


def of(*channels: dict[str, Any]) -> Found:
    return Found({"notificationChannels": [*channels]})


NONE = "Alerts in shop notify nobody, they have no channel: "
DEAF = "Alerts in shop notify nobody, none of their channels is enabled and verified: "
HEARS = "Alerts in shop notify ops@example.com. Google does not tell whether mails arrive there: "
BOTH_HEAR = "Alerts in shop notify ab@example.com, ops@example.com. "
UNREAD = "It could not be read whom alerts in shop notify: "


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (of(CHANNEL), None),
        (of(EMAIL), HEARS),
        (of(CHANNEL, EMAIL), HEARS),
        (of(changed(EMAIL, enabled=None)), HEARS),
        (of(changed(EMAIL, enabled=False, labels={"email_address": "away@example.com"}), EMAIL), HEARS),
        (of(EMAIL, changed(EMAIL, labels={"email_address": "ab@example.com"})), BOTH_HEAR),
        (Found({}), NONE),
        (of(changed(CHANNEL, userLabels=None)), NONE),
        (of(changed(CHANNEL, userLabels={"tpu-slice-provisioner": "office"})), NONE),
        (of(changed(CHANNEL, enabled=False)), DEAF),
        (of(changed(CHANNEL, type="sms", verificationStatus="UNVERIFIED")), DEAF),
        (Denied("no"), UNREAD),
        (Unreachable("timed out"), UNREAD),
    ],
)
def test_whether_alerts_notify_nobody_or_addresses_that_may_be_mistyped_is_told(
    answer: Answer, told: str | None
) -> None:
    findings = list(channel_findings("shop", "shop", answer, "infra/bootstrap.sh --project shop"))
    severity = Severity.NOTE if told in {HEARS, BOTH_HEAR} else Severity.WARNING
    assert [finding.severity for finding in findings] == ([severity] if told else [])
    assert all(finding.message.startswith(told or "") for finding in findings)
    if told in {NONE, DEAF}:
        assert findings[0].remedies == ("infra/bootstrap.sh --project shop --notify EMAIL",)


def test_a_project_that_does_not_exist_is_not_told_as_one_whose_alerts_are_silent() -> None:
    assert list(channel_findings("shop", "shop", Missing(), "")) == []


FULL, OPEN = Allowed(chips_per_namespace=64), Allowed()


@pytest.mark.parametrize(
    ("policy", "where"),
    [
        (Policy(chips_per_cluster=16), None),
        (Policy(chips_per_cluster=16, namespaces={"a": OPEN}), None),
        (Policy(everyone=FULL), None),
        (Policy(everyone=FULL, namespaces={"a": FULL}), None),
        (Policy(everyone=FULL, namespaces={"a": OPEN, "b": FULL, "c": OPEN}), "in namespace a, c"),
        (Policy(), "here"),
        (Policy(namespaces={"a": FULL}), "here"),
        (Policy(everyone=Allowed(chips_per_slice=4)), "here"),
        (Policy(everyone=Allowed(chips_per_jobset=64)), "here"),
    ],
)
def test_a_cluster_whose_chips_nothing_limits_is_told(policy: Policy, where: str | None) -> None:
    message = (
        f"Nothing but quota limits how many chips are bought {where}, whoever asks: docs/cost.md has what they cost."
    )
    told = [warning(message, "policy: {chips_per_cluster: CHIPS}")]
    assert list(limit_findings(settings(policy=policy))) == (told if where else [])
