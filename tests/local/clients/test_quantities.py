from __future__ import annotations

import pytest

from infra.local.clients.quantities import canonical


@pytest.mark.parametrize(
    ("written", "form"),
    [
        ("4", "4"),
        (4, "4"),
        ("0", "0"),
        ("0Gi", "0"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("0.5", "500m"),
        (0.5, "500m"),
        ("1.5Gi", "1536Mi"),
        ("2048Mi", "2Gi"),
        ("1024", "1024"),
        ("1024k", "1024k"),
        ("1000k", "1M"),
        ("1000Ki", "1000Ki"),
        ("0.5Ki", "512"),
        ("0.1Ki", "102400m"),
        ("1e3", "1e3"),
        ("12e4", "120e3"),
        ("1E6", "1e6"),
        ("100u", "100u"),
        ("0.1n", "1n"),
        ("-2000m", "-2"),
    ],
    ids=str,
)
def test_it_is_written_as_go_writes_it(written: str | float, form: str) -> None:
    assert canonical(written) == form


@pytest.mark.parametrize("written", ["many", "", "1e999999999", "4 Gi", "Gi", "1KB"])
def test_other_texts_are_no_quantities(written: str) -> None:
    with pytest.raises(ValueError, match="not a quantity"):
        canonical(written)
