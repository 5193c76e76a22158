"""Firestore's indexes in a deployment: Terraform asks for them, a step waits for them, a removal leaves them."""

import pytest

from infra.preflight import indexes
from tests.infra.sources import BUILD, DESTROY_STEPS, STEPS, resource

FIRESTORE = [
    ("google_firestore_index", "index"),
    ("google_firestore_field", "field"),
    ("google_firestore_field", "rest"),
]


@pytest.mark.parametrize(("kind", "name"), FIRESTORE, ids=" ".join)
def test_terraform_asks_firestore_for_indexes_and_leaves_it_to_the_build_to_wait(kind: str, name: str) -> None:
    body = resource(kind, name)
    assert body["skip_wait"] is True
    [timeouts] = body["timeouts"]
    assert {*timeouts} >= {"create", "delete"}, "else the provider's 20 minutes"
    assert body["deletion_policy"] == "${local.left_to_database}"
    assert f"-target={kind}.{name}" in DESTROY_STEPS["unprotect"]["script"], "so that the policy is in the state"


def test_no_field_loses_its_index_before_it_has_one_of_its_own() -> None:
    assert resource("google_firestore_field", "rest")["depends_on"] == ["${google_firestore_field.field}"]


def test_the_build_waits_for_indexes_before_anything_makes_a_query() -> None:
    order = list(STEPS)
    assert order.index("indexes") == order.index("apply") + 1
    assert "-m infra.preflight indexes " in STEPS["indexes"]["script"]
    build = int(BUILD["timeout"].removesuffix("s"))
    assert build - 1800 > indexes.ROUNDS * indexes.PAUSE_SECONDS, "the other steps have half an hour"
