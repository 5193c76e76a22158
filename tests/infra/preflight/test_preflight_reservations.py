"""Whose reservations the settings name."""

from __future__ import annotations

from infra.preflight.findings import Severity
from infra.preflight.place import Place
from infra.preflight.quotas import reservation_findings
from tests.infra.preflight.clouds import settings
from tpu_slices.domain.model.clusters import Allowed, Policy

HERE = Place.of("projects/chips/locations/us-central1/clusters/red")
THEIRS = "projects/library/reservations/hall-7"


def test_the_owner_of_a_shared_reservation_is_named_with_what_gives_the_right_to_read_it() -> None:
    policy = Policy(everyone=Allowed(reservations=("*",)), namespaces={"a": Allowed(reservations=(THEIRS, "mine"))})
    (found,) = reservation_findings(settings(policy=policy), HERE, "shop")
    assert found.severity is Severity.NOTE
    assert found.message.startswith("Reservations of library are named.")
    assert [each.rpartition(":")[2] for each in found.remedies] == [
        "tpu-slice-reconcile@shop.iam.gserviceaccount.com",
        "tpu-slice-sweep@shop.iam.gserviceaccount.com",
    ]


def test_reservations_of_the_clusters_own_project_need_nothing_more() -> None:
    policy = Policy(everyone=Allowed(reservations=("hall-7", "projects/chips/reservations/attic", "projects/*")))
    assert not list(reservation_findings(settings(policy=policy), HERE, "shop"))
