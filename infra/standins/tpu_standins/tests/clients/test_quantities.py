from __future__ import annotations

import pytest

from tpu_standins.clients.quantities import quantity


@pytest.mark.parametrize(
    ("written", "billionths"),
    [
        ("4", 4 * 10**9),
        (4, 4 * 10**9),
        (0.5, 5 * 10**8),
        ("1500m", 15 * 10**8),
        ("1.5Gi", 1536 * 2**20 * 10**9),
        ("1000Ki", 1000 * 1024 * 10**9),
        ("1024k", 1024 * 10**12),
        ("12e4", 12 * 10**13),
        ("1E6", 10**15),
        ("100u", 10**5),
        ("0.1n", 1),
        ("-2000m", -2 * 10**9),
    ],
    ids=str,
)
def test_it_is_read_exactly_or_rounded_up_to_a_billionth(written: str | float, billionths: int) -> None:
    assert quantity(written) == billionths


@pytest.mark.parametrize("written", ["many", "", "1e999999999", "4 Gi", "Gi", "1KB"])
def test_other_texts_are_no_quantities(written: str) -> None:
    with pytest.raises(ValueError, match="not a quantity"):
        quantity(written)
