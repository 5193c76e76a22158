from fractions import Fraction

import pytest

from tpu_slices.wire.quantities import quantity


@pytest.mark.parametrize(
    ("written", "amount"),
    [
        ("0", 0),
        ("4", 4),
        ("+4", 4),
        (4, 4),
        (0.5, Fraction(1, 2)),
        ("0.5", Fraction(1, 2)),
        (".5", Fraction(1, 2)),
        ("5.", 5),
        ("007", 7),
        ("100n", Fraction(1, 10**7)),
        ("100u", Fraction(1, 10**4)),
        ("1500m", Fraction(3, 2)),
        ("2k", 2_000),
        ("2M", 2 * 10**6),
        ("2G", 2 * 10**9),
        ("2T", 2 * 10**12),
        ("2P", 2 * 10**15),
        ("2E", 2 * 10**18),
        ("2Ki", 2 << 10),
        ("2Mi", 2 << 20),
        ("1.5Gi", 3 << 29),
        ("2Ti", 2 << 40),
        ("2Pi", 2 << 50),
        ("2Ei", 2 << 60),
        ("1e3", 1_000),
        ("1E3", 1_000),
        ("12e-1", Fraction(6, 5)),
        ("1e+2", 100),
        (1e-05, Fraction(1, 10**5)),
    ],
)
def test_a_quantity_is_parsed_exactly(written: str | float, amount: Fraction | int) -> None:
    assert quantity(written) == amount


@pytest.mark.parametrize(
    "written",
    ["", "-1", "lots", "4 Gi", "4gi", "4K", "1e", "1e3Gi", "1e999", "0x10", "1_000", "1/2", "٤", "4\n", "9" * 65, True],
)
def test_a_quantity_that_kubernetes_refuses_is_an_error(written: str | float) -> None:
    with pytest.raises(ValueError, match="is not a valid quantity"):
        quantity(written)
