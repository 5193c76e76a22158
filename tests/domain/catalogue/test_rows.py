"""The files of the catalogue: what their rows say, and what is said of a row that is wrong."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from tests.tpu9x import CELLS
from tpu_slices.domain.catalogue.accelerators import CATALOGUE, ImpossibleShape, accelerators_with, shape_of
from tpu_slices.domain.catalogue.machines import COLUMNS, Placement, accelerators_of, machine_row
from tpu_slices.domain.catalogue.prices import PriceKind, price_row, prices_with
from tpu_slices.domain.catalogue.rows import Row, WrongRow, file_of, rows_of
from tpu_slices.domain.catalogue.topology import Topology
from tpu_slices.domain.catalogue.zones import zones_with

FILE = "machines.tsv"
TPU9X = {**CELLS, "generation": "tpu9x"}


def read(*rows: dict[str, str]) -> str:
    """Return the file with some rows more."""
    lines = ("\t".join(row.get(column, "") for column in columns()) for row in rows)
    return file_of(FILE) + "".join(f"{line}\n" for line in lines)


def columns() -> list[str]:
    return next(line for line in file_of(FILE).splitlines() if not line.startswith("#")).split("\t")


def test_the_file_has_the_columns_that_are_read() -> None:
    assert sorted(columns()) == sorted(COLUMNS)


def test_an_accelerator_that_is_one_row_more_has_its_slices_and_what_is_not_known_is_none() -> None:
    known = accelerators_of(map(machine_row, rows_of(read(TPU9X), FILE)))
    assert known.keys() == {*CATALOGUE, "tpu9x"}
    kind = known["tpu9x"]
    (machine,) = kind.machines
    assert (machine.arch, machine.vcpus, machine.allocatable_cpu_milli, kind.flex_start) == ("arm64", None, None, None)
    for topology, hosts, placement in (("2x2", 1, None), ("4x4", 4, Placement.COMPACT), ("4x6", 8, Placement.COMPACT)):
        shape = shape_of("tpu9x", Topology.parse(topology), 4, known=known)
        assert (shape.machine, shape.hosts, shape.placement) == (machine, hosts, placement)
        assert shape.chips == hosts * 4


WRONG = {
    "no number of chips": ({"chips": ""}, "chips: it is missing: write the chips of one host"),
    "zero for what is not known": (
        {"vcpus": "0"}, 'vcpus: "0" must be a whole number above zero, or left out if it is not known'
    ),
    "a word for a number": ({"chips": "four"}, 'chips: "four" must be a whole number above zero'),
    "no source": ({"source": ""}, "source: it is missing: write it"),
    "no day": ({"read": ""}, "read: it is missing: write a day such as 2026-11-27"),
    "a day that is none": ({"read": "November"}, 'read: "November" must be a day such as 2026-11-27'),
    "a topology that is none": ({"topologies": "2by2"}, 'topologies: "2by2": "2by2" is not a topology; use 2 or 3'),
    "hosts that do not divide": (
        {"topologies": "2x3"}, 'topologies: "2x3" is not made of hosts of 4 chips: name their number, as in 2x3=2'
    ),
    "no hosts": ({"topologies": "2x2=0"}, 'topologies: "2x2=0" is not made of hosts of 4 chips'),
    "another processor": ({"arch": "sparc"}, 'arch: "sparc" must be amd64 or arm64, or left out'),
    "no placement": ({"placement": ""}, "placement: it is missing, and there are slices of several hosts: write"),
    "no such placement": ({"placement": "LOOSE"}, 'placement: "LOOSE" must be COMPACT or WORKLOAD_POLICY'),
    "no disks": ({"boot_disks": ""}, "boot_disks: it is missing: write what the hosts support, the default first"),
    "neither yes nor no": ({"flex_start": "maybe"}, 'flex_start: "maybe" must be yes or no, or left out'),
    "more cubes than any pod has": ({"cubes": "1000000"}, "cubes: 1000000 is more than 1024"),
    "no accelerator": ({"accelerator": ""}, "accelerator: it is missing: write it"),
    "a machine type that is there": (
        {"machine_type": "ct5p-hightpu-4t"}, "machine_type: there is a row of ct5p-hightpu-4t already: remove one"
    ),
    "another generation than its accelerator": (
        {"accelerator": "tpu7x"}, 'generation: "tpu9x" is not what another row of tpu7x says, "tpu7x": agree'
    ),
}  # fmt: skip


@pytest.mark.parametrize(("change", "said"), WRONG.values(), ids=WRONG)
def test_a_wrong_row_is_refused_by_file_line_field_and_remedy(change: dict[str, str], said: str) -> None:
    text = read({**TPU9X, **change})
    with pytest.raises(WrongRow) as refused:
        accelerators_of(map(machine_row, rows_of(text, FILE)))
    assert str(refused.value).startswith(f"{FILE}, line {len(text.splitlines())}, {said}")


def test_hosts_that_all_have_to_be_named_are_refused_with_their_name_if_they_are_not() -> None:
    known = accelerators_of(map(machine_row, rows_of(read({**TPU9X, "by_name": "yes"}), FILE)))
    with pytest.raises(ImpossibleShape, match="instance-type: tpu9x 4x4 is only available by its name: select tpu9x-"):
        shape_of("tpu9x", Topology.parse("4x4"), 4, known=known)
    assert shape_of("tpu9x", Topology.parse("4x4"), 4, "tpu9x-standard-4t", known).hosts == 4


CORRECTED = {
    "accelerator": "tpu-v6e-slice", "machine_type": "ct6e-standard-4t", "chips": "4", "memory_gib": "719",
    "read": "2026-11-30", "source": "a page",
}  # fmt: skip


def test_a_row_of_settings_that_corrects_one_fact_of_a_machine_type_keeps_what_it_leaves_out() -> None:
    known = accelerators_with((tuple(CORRECTED.items()),))["tpu-v6e-slice"]
    before = {machine.name: machine for machine in CATALOGUE["tpu-v6e-slice"].machines}
    after = {machine.name: machine for machine in known.machines}
    changed = after.pop("ct6e-standard-4t")
    assert changed == replace(before.pop("ct6e-standard-4t"), memory_gib=719)
    assert after == before


def test_a_row_of_settings_says_by_a_dash_that_there_is_none() -> None:
    cells = {**CORRECTED, "accelerator": "tpu-v5p-slice", "machine_type": "ct5p-hightpu-4t", "cubes": "-"}
    (machine,) = accelerators_with((tuple(cells.items()),))["tpu-v5p-slice"].machines
    assert (machine.cubes, machine.listed) == (0, CATALOGUE["tpu-v5p-slice"].machines[0].listed)


def test_a_row_of_settings_that_puts_a_machine_type_to_another_accelerator_is_refused() -> None:
    """A typo there would take all slices of the true one away."""
    cells = {**CORRECTED, "accelerator": "tpu-v6e-slise", "boot_disks": "hyperdisk-balanced", "placement": "COMPACT"}
    with pytest.raises(WrongRow) as refused:
        accelerators_with((tuple(cells.items()),))
    assert str(refused.value) == (
        "catalogue.machines.0.accelerator: ct6e-standard-4t is a machine type of tpu-v6e-slice: write that"
    )


def test_a_row_with_too_few_cells_is_refused_with_the_number_of_columns() -> None:
    with pytest.raises(WrongRow, match=r"machines.tsv, line 2: it has 1 cells, and there are 2 columns: put a tab"):
        list(rows_of("accelerator\tchips\ntpu9x\n", FILE))


def test_a_column_that_nobody_reads_is_refused() -> None:
    with pytest.raises(WrongRow, match="colour: there is no such field: use accelerator, machine_type, arch, chips"):
        machine_row(Row({**TPU9X, "colour": "red"}))


def test_no_price_is_zero_and_each_is_of_an_accelerator_that_is_known_and_has_a_day_and_a_source() -> None:
    prices = prices_with()
    assert {label for label, _, _ in prices} <= CATALOGUE.keys()
    assert {kind for _, _, kind in prices} == {*PriceKind}
    assert all(price.usd_per_hour > 0 and price.source for price in prices.values())
    assert all(date(2026, 6, 1) <= price.read <= date(2026, 11, 30) for price in prices.values())


def test_prices_of_v4_v5e_and_tpu7x_and_those_of_commitments_are_known() -> None:
    prices = prices_with()
    assert prices["tpu-v4-podslice", "us-central2", PriceKind.COMMITMENT_3Y].usd_per_hour == 1.45
    assert prices["tpu-v5-lite-podslice", "us-west4", PriceKind.CALENDAR].usd_per_hour == 0.84
    assert prices["tpu7x", "us-central1", PriceKind.FLEX_START].usd_per_hour == 6
    assert ("tpu7x", "us-east1", PriceKind.SPOT) not in prices


@pytest.mark.parametrize("usd", ["0", "-1", "nan", "inf", "free"])
def test_a_price_that_is_no_amount_is_refused(usd: str) -> None:
    cells = {"accelerator": "a", "region": "r", "kind": "spot", "usd_per_chip_hour": usd}
    with pytest.raises(WrongRow, match=f'usd_per_chip_hour: "{usd}" must be dollars above zero'):
        price_row(Row({**cells, "read": "2026-11-30", "source": "s"}))


def test_zones_are_of_accelerators_that_are_known() -> None:
    assert zones_with().keys() <= CATALOGUE.keys()
