"""Topologies as tenants write them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpu_slices.domain.catalogue.topology import Topology

dimensions = st.lists(st.integers(1, 9999), min_size=2, max_size=3).map(tuple)


@given(dimensions)
def test_a_topology_is_parsed_and_written_back(sides: tuple[int, ...]) -> None:
    text = "x".join(map(str, sides))
    topology = Topology.parse(text)
    assert (topology.dimensions, str(topology)) == (sides, text)


@given(dimensions)
def test_the_chips_are_the_product_of_the_sides(sides: tuple[int, ...]) -> None:
    assert Topology(sides).chips == math.prod(sides)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("4", id="one side"),
        pytest.param("2x2x2x2", id="four sides"),
        pytest.param("4x0", id="a side of zero"),
        pytest.param("04x4", id="a leading zero"),
        pytest.param("-4x4", id="a negative side"),
        pytest.param("4X4", id="a capital X"),
        pytest.param("4x4 ", id="a blank"),
        pytest.param("4x4\n", id="a newline"),
        pytest.param("4x", id="a side is missing"),
        pytest.param("10000x1", id="beyond any slice"),
        pytest.param("٤x٤", id="digits of another script"),
        pytest.param("four", id="words"),
    ],
)
def test_a_malformed_topology_is_an_error_that_quotes_it(text: str) -> None:
    with pytest.raises(ValueError, match="is not a topology; use 2 or 3 positive numbers") as refused:
        Topology.parse(text)
    assert f'"{text}"' in str(refused.value)


def test_topologies_are_equal_by_their_sides_and_not_by_their_chips() -> None:
    assert Topology.parse("2x4") == Topology((2, 4))
    assert Topology.parse("2x4") != Topology.parse("4x2")
