"""Whose reservations the settings name, and whether the functions may read them."""

from __future__ import annotations

import pytest

from infra.preflight.accounts import reservation_findings, reservation_owners
from infra.preflight.answers import Answer, Denied, Found, Missing
from infra.preflight.findings import Severity
from infra.preflight.place import Place as Cluster
from tests.infra.preflight.clouds import settings
from tpu_slices.domain.model.capacity import Place
from tpu_slices.domain.model.clusters import Allowed, Policy
from tpu_slices.domain.model.slices import CapacityKind

HERE = Cluster.of("projects/chips/locations/us-central1/clusters/red")
THEIRS = "projects/library/reservations/hall-7"
RECONCILE, SWEEP = (f"tpu-slice-{each}@shop.iam.gserviceaccount.com" for each in ("reconcile", "sweep"))


def granting(*roles: tuple[str, str]) -> Answer:
    return Found({"bindings": [{"role": role, "members": [f"serviceAccount:{who}"]} for who, role in roles]})


def test_owners_of_reservations_are_found_in_the_policy_and_in_places() -> None:
    policy = Policy(everyone=Allowed(reservations=("*",)), namespaces={"a": Allowed(reservations=(THEIRS, "mine"))})
    booked = Place(
        capacity=CapacityKind.RESERVATION, zones=("us-central1-a",), reservation="projects/city/reservations/r"
    )
    assert reservation_owners(settings(policy=policy, places={"booked": booked}), HERE) == ["city", "library"]


def test_reservations_of_the_clusters_own_project_need_nothing_more() -> None:
    policy = Policy(everyone=Allowed(reservations=("hall-7", "projects/chips/reservations/attic", "projects/*")))
    assert reservation_owners(settings(policy=policy), HERE) == []


@pytest.mark.parametrize("policy", [Denied("no"), Missing()])
def test_an_owner_whose_policy_is_not_shown_is_named_with_what_gives_the_right(policy: Answer) -> None:
    (found,) = reservation_findings({"library": policy}, "shop")
    assert found.severity is Severity.NOTE
    assert found.message.startswith("Reservations of library are named. Its owner has to let")
    assert [each.split("serviceAccount:")[1].split()[0] for each in found.remedies] == [RECONCILE, SWEEP]


def test_an_owner_that_does_not_let_a_function_read_is_told_with_the_function() -> None:
    policy = granting((RECONCILE, "roles/compute.viewer"), (SWEEP, "roles/logging.viewer"))
    (found,) = reservation_findings({"library": policy}, "shop")
    assert found.severity is Severity.WARNING
    assert f"it does not let {SWEEP} read them" in found.message
    assert len(found.remedies) == 1
    assert SWEEP in found.remedies[0]


@pytest.mark.parametrize("role", ["roles/compute.viewer", "roles/viewer", "projects/library/roles/reservationReader"])
def test_of_an_owner_that_lets_both_functions_read_nothing_is_said(role: str) -> None:
    assert list(reservation_findings({"library": granting((RECONCILE, role), (SWEEP, role))}, "shop")) == []
