"""What a function imports before its first event: what it does not need, its cold start need not wait for."""

from __future__ import annotations

import pytest

from tests.bench.cold_starts import FUNCTIONS, Start, start


@pytest.fixture(scope="module", params=FUNCTIONS)
def function(request: pytest.FixtureRequest) -> tuple[str, Start]:
    return request.param, start(FUNCTIONS[request.param][0])


@pytest.mark.slow
def test_a_function_imports_no_more_of_our_modules_than_are_counted_here(function: tuple[str, Start]) -> None:
    name, started = function
    assert len(started.ours) <= {"receive": 205, "reconcile": 206, "reconcile on GKE": 212}[name]
    assert not [
        each for each in started.modules if each.startswith(("tpu_slices_cli", "tpu_slices_simulator", "relay"))
    ]


@pytest.mark.slow
def test_only_who_calls_gke_imports_its_client_and_nobody_there_that_of_compute_engine(
    function: tuple[str, Start],
) -> None:
    name, started = function
    assert ("google.cloud.container_v1" in started.modules) == (name == "reconcile on GKE")
    assert "google.cloud.compute_v1" not in started.modules
    assert "kubernetes" not in started.modules
