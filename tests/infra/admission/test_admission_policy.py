"""The manifest of the policy by which pods run on hosts that are meant for them, and the keys that it requires."""

from __future__ import annotations

import pytest

from tests.builders import a_job, an_owner
from tests.infra.admission.case import KEYS
from tests.infra.admission.cases import CASES
from tests.infra.admission.pods import GROUP, UID
from tests.infra.admission.settings import BINDING, DEFINED
from tpu_slices.domain.model.slices import OwnerKind, WorkloadJob, WorkloadUid
from tpu_slices.domain.planning.keys import key_of


def test_no_two_cases_have_the_same_name() -> None:
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize(
    ("job", "first_job", "keys"),
    [
        (a_job(uid=WorkloadUid(UID), replicated_job="workers", job_index=1), 3, KEYS[:1]),
        (a_job(owner=an_owner(kind=OwnerKind.JOB, uid=WorkloadUid(UID)), replicated_job=""), None, (UID,)),
        (
            a_job(
                owner=an_owner("vllm", namespace="default", kind=OwnerKind.LEADER_WORKER_SET),
                replicated_job="",
                job_index=1,
            ),
            None,
            (GROUP,),
        ),
    ],
    ids=["JobSet", "Job", "LeaderWorkerSet"],
)
def test_the_functions_give_hosts_the_keys_that_the_policy_asks_for(
    job: WorkloadJob, first_job: int | None, keys: tuple[str, ...]
) -> None:
    assert (key_of(job, first_job),) == keys


def test_the_settings_are_off_and_part_of_the_policy_itself() -> None:
    """The API server keeps old parameters after a policy or its binding was made anew."""
    variables = {each["name"]: each["expression"] for each in DEFINED["spec"]["variables"]}
    assert (variables["stripSpotAndReservation"], variables["locationHint"]) == ("false", '""')
    assert "paramKind" not in DEFINED["spec"]
    assert list(BINDING["spec"]) == ["policyName"]


def test_only_the_creation_of_pods_is_matched() -> None:
    (rule,) = DEFINED["spec"]["matchConstraints"]["resourceRules"]
    assert (rule["apiGroups"], rule["resources"], rule["operations"]) == ([""], ["pods"], ["CREATE"])


def test_what_the_api_server_would_fill_in_is_written_out() -> None:
    """Else another field manager owns the defaults, and a server-side apply conflicts with it."""
    constraints = DEFINED["spec"]["matchConstraints"]
    defaults = {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}
    assert {key: constraints[key] for key in defaults} == defaults
    assert [rule["scope"] for rule in constraints["resourceRules"]] == ["*"]


def test_the_binding_refers_to_the_policy() -> None:
    assert BINDING["spec"]["policyName"] == DEFINED["metadata"]["name"]
