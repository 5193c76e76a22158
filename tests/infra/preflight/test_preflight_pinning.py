"""What preflight says inside a cluster of a pod with chips that it tries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from infra.preflight.answers import Answer, Denied, Found, Missing, Unreachable
from infra.preflight.findings import Severity
from infra.preflight.kubectl import Kubectl
from infra.preflight.pinning import pinning_findings
from relay.notices.pinning import POD, WEBHOOK
from tests.infra.admission.judges import JUDGES, Judge
from tests.infra.admission.settings import OFF

FAILING = f'Error from server (InternalError): failed calling webhook "{WEBHOOK}": connection refused'


@pytest.mark.parametrize("judge", JUDGES.values(), ids=JUDGES)
def test_a_pod_that_is_judged_is_no_finding(judge: Judge) -> None:
    assert list(pinning_findings(36, Found(judge(dict(POD), OFF)))) == []


@pytest.mark.parametrize(("minor", "remedy"), [(36, "admission.yaml"), (35, "the webhook")])
def test_pods_that_are_not_pinned_are_told_with_what_the_server_can_apply(minor: int, remedy: str) -> None:
    [finding] = pinning_findings(minor, Found(dict(POD)))
    assert finding.severity is Severity.WARNING
    assert remedy in finding.remedies[0]


def test_a_webhook_that_does_not_answer_is_an_error() -> None:
    [finding] = pinning_findings(35, Unreachable(FAILING))
    assert finding.severity is Severity.ERROR
    assert "No pod with chips can be created" in finding.message


@pytest.mark.parametrize("answer", [Denied("Forbidden"), Unreachable("timed out")])
def test_what_cannot_be_tried_is_not_known(answer: Answer) -> None:
    [finding] = pinning_findings(36, answer)
    assert finding.severity is Severity.WARNING
    assert "It could not be read whether pods are pinned" in finding.message


def test_without_the_namespace_only_its_own_finding_says_so() -> None:
    assert list(pinning_findings(36, Missing())) == []


def test_the_pod_is_given_to_kubectl_and_nothing_of_it_is_stored(tmp_path: Path) -> None:
    program = tmp_path / "kubectl"
    program.write_text('#!/bin/sh\nprintf \'{"said": "%s", "given": \' "$*"; cat; echo "}"\n')
    program.chmod(0o755)
    answer: Any = Kubectl((str(program),)).tried(POD)
    assert answer.body["given"] == json.loads(json.dumps(dict(POD)))
    assert "--dry-run=server" in answer.body["said"]
