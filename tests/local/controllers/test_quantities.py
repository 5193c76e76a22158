from fractions import Fraction

import pytest

from infra.local.cluster.controllers.quantities import ONE, quantity, requested


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4", 4),
        (4, 4),
        ("500m", Fraction(1, 2)),
        ("0.5", Fraction(1, 2)),
        ("16Gi", 16 * 2**30),
        ("16G", 16 * 10**9),
        ("1e3", 1000),
        ("2E", 2 * 10**18),
    ],
)
def test_quantity(text: str | int, expected: Fraction | int) -> None:
    assert quantity(text) == expected * ONE


def test_what_is_no_quantity_is_refused() -> None:
    with pytest.raises(ValueError, match="not a quantity"):
        quantity("four")


def test_a_pod_asks_for_its_containers_together_or_its_largest_init_container() -> None:
    def container(cpu: str, tpu: str) -> dict[str, object]:
        return {"resources": {"requests": {"cpu": cpu}, "limits": {"cpu": "9", "google.com/tpu": tpu}}}

    spec = {
        "containers": [container("1", "2"), container("500m", "2")],
        "initContainers": [container("2", "1"), container("1", "1")],
        "overhead": {"cpu": "250m"},
    }

    assert requested(spec) == {"cpu": 9 * ONE // 4, "google.com/tpu": 4 * ONE, "pods": ONE}
