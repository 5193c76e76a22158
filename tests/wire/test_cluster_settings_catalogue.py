"""What operators add to the catalogue, and correct in it, in the settings of a cluster."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import Any

import pytest

from tests import tpu9x
from tests.builders import settings
from tpu_slices.domain.catalogue.accelerators import CATALOGUE, ImpossibleShape, shape_of
from tpu_slices.domain.catalogue.prices import PriceKind, prices_with
from tpu_slices.domain.catalogue.topology import Topology
from tpu_slices.domain.catalogue.zones import zones_with
from tpu_slices.domain.model.clusters import CatalogueSettings, ClusterSettings
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.ports.errors import Permanent
from tpu_slices.wire.cluster_settings import decode_settings, encode_settings

CLUSTER = ClusterId("blue")
READ: dict[str, Any] = {"read": date(2026, 11, 30), "source": "the offer of 28 November"}
TPU9X: dict[str, Any] = {**tpu9x.TPU9X, "flex_start": False, **READ}
V6E: dict[str, Any] = {"accelerator": "tpu-v6e-slice", "region": "us-east5", "kind": "on_demand", **READ}


NEAR: dict[str, Any] = {"accelerator": "tpu-v6e-slice", "zone": "us-central2-b", **READ}


def decoded(machines: object = (), prices: object = (), zones: object = (), **more: object) -> ClusterSettings:
    sections = {"machines": machines, "prices": prices, "zones": zones}
    rows = {name: value for name, value in sections.items() if value != ()}
    return decode_settings(CLUSTER, {"path": settings().path, "catalogue": rows, **more}, "v")


def refusal(**document: object) -> str:
    with pytest.raises(Permanent) as refused:
        decoded(**document)
    return str(refused.value).removeprefix("clusters/blue: ")


def test_a_generation_that_is_not_known_is_served_by_machine_type_hosts_and_chips() -> None:
    known = decoded([TPU9X]).accelerators
    assert known.keys() == {*CATALOGUE, "tpu9x"}
    shape = shape_of("tpu9x", Topology.parse("4x6"), 4, known=known)
    assert (shape.machine.name, shape.machine.arch, shape.hosts, shape.chips) == ("tpu9x-standard-4t", "arm64", 8, 32)
    with pytest.raises(ImpossibleShape, match="is unknown"):
        shape_of("tpu9x", Topology.parse("4x6"), 4)


def test_without_rows_the_catalogue_is_that_of_the_release() -> None:
    assert decoded().accelerators is CATALOGUE
    assert decoded().catalogue == CatalogueSettings()


def test_a_row_replaces_that_of_its_machine_type_and_speaks_for_its_accelerator() -> None:
    row = {**TPU9X, "accelerator": "tpu-v6e-slice", "machine_type": "ct6e-standard-8t", "chips": 8, "topologies": "2x4"}
    kind = decoded([row]).accelerators["tpu-v6e-slice"]
    assert {machine.name: machine.arch for machine in kind.machines} == {
        "ct6e-standard-1t": "amd64",
        "ct6e-standard-4t": "amd64",
        "ct6e-standard-8t": "arm64",
    }
    assert kind.flex_start is False
    assert CATALOGUE["tpu-v6e-slice"].flex_start is True


def test_what_a_row_does_not_say_of_its_accelerator_stays_as_it_was() -> None:
    own = {
        "accelerator": "tpu-v5p-slice",
        "machine_type": "ct5p-hightpu-4t",
        "chips": 4,
        "topologies": ["2x2x1"],
        "cubes": "-",
        **READ,
    }
    before, now = CATALOGUE["tpu-v5p-slice"], decoded([own]).accelerators["tpu-v5p-slice"]
    assert (now.in_groups, now.boot_disks, now.placement) == (before.in_groups, before.boot_disks, before.placement)
    assert [len(machine.slices) for machine in now.machines] == [1]


def test_a_price_is_corrected_or_taken_back_and_the_others_stay() -> None:
    rows = [{**V6E, "usd_per_chip_hour": 2.16}, {**V6E, "kind": "spot"}]
    prices = prices_with(decoded(prices=rows).catalogue.prices)
    found = {kind: prices.get(("tpu-v6e-slice", "us-east5", kind)) for kind in PriceKind}
    assert {kind: price and price.usd_per_hour for kind, price in found.items()} == {
        "on_demand": 2.16,
        "spot": None,
        "flex_start": 1.35,
        "calendar": 1.89,
        "commitment_1y": 1.89,
        "commitment_3y": 1.22,
    }


def test_a_zone_is_added_or_taken_back_and_the_others_stay() -> None:
    rows = [NEAR, {**NEAR, "zone": "us-east5-b", "offered": False}]
    before, now = (zones_with(each.catalogue.zones)["tpu-v6e-slice"] for each in (decoded(), decoded(zones=rows)))
    assert {*now} == {*before, "us-central2-b"} - {"us-east5-b"}


def test_rows_are_written_back_as_they_were_read() -> None:
    found = decoded([TPU9X], [{**V6E, "usd_per_chip_hour": 2.16}], [{**NEAR, "offered": False}])
    document = encode_settings(found)
    assert document["catalogue"]["machines"][0]["topologies"] == "2x2 4x4 4x6=8"
    assert decode_settings(CLUSTER, document, "v") == found


def test_a_day_that_firestore_has_made_a_time_is_read_all_the_same() -> None:
    row = {**V6E, "usd_per_chip_hour": 2.16, "read": datetime(2026, 11, 30, tzinfo=UTC)}
    assert dict(decoded(prices=[row]).catalogue.prices[0])["read"] == "2026-11-30"


def test_the_policy_may_name_what_the_rows_add_and_nothing_else() -> None:
    decoded([TPU9X], policy={"accelerators": ["tpu9x"]})
    assert refusal(policy={"accelerators": ["tpu9x"]}).startswith("policy.accelerators.0: Invalid value: 'tpu9x'")


FIRST = "catalogue.machines.0"
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no list": ({"machines": {"chips": 4}}, "catalogue.machines: Invalid value: {'chips': 4}: must be a list of maps"),
    "no map": ({"prices": ["cheap"]}, "catalogue.prices.0: Invalid value: 'cheap': must be a list of maps, each a row"),
    "an unknown section": ({"regions": []}, "catalogue.regions: Unknown field: "),
    "no chips": (
        {"machines": [{**TPU9X, "chips": None}]},
        f"{FIRST}.chips: it is missing: write the chips",
    ),
    "a word for chips": (
        {"machines": [{**TPU9X, "chips": "four"}]},
        f'{FIRST}.chips: "four" must be a whole',
    ),
    "an unknown field": (
        {"machines": [{**TPU9X, "chip": 4}]},
        f"{FIRST}.chip: there is no such field: use ",
    ),
    "a network profile": (
        {"machines": [{**TPU9X, "network_profile": True}]},
        "catalogue.machines.0.network_profile: there is no such field",
    ),
    "neither yes nor no, of an accelerator that is known": (
        {"machines": [{**TPU9X, "accelerator": "tpu7x", "flex_start": "maybe"}]},
        f'{FIRST}.flex_start: "maybe" must be yes or no',
    ),
    "rows that do not agree": (
        {"machines": [TPU9X, {**TPU9X, "machine_type": "tpu9x-standard-1t", "flex_start": True}]},
        'catalogue.machines.1.flex_start: "yes" is not what another row of tpu9x says, "no": agree',
    ),
    "the same machine twice": (
        {"machines": [TPU9X, TPU9X]},
        "catalogue.machines.1.machine_type: there is a row of tpu9x-standard-4t already: remove one of them",
    ),
    "a price of zero": (
        {"prices": [{**V6E, "usd_per_chip_hour": 0}]},
        'catalogue.prices.0.usd_per_chip_hour: "0" must be dollars above zero, such as 2.70, or left out',
    ),
    "no zone": (
        {"zones": [{**NEAR, "zone": "us-central2"}]},
        'catalogue.zones.0.zone: "us-central2" must be the name of a zone, such as us-central2-b',
    ),
    "a zone twice": (
        {"zones": [NEAR, {**NEAR, "offered": False}]},
        "catalogue.zones.1.zone: there is a row for tpu-v6e-slice us-central2-b already: remove one of them",
    ),
    "an accelerator that no row of machines has": (
        {"zones": [{**NEAR, "accelerator": "tpu-v6e"}]},
        'catalogue.zones.0.accelerator: "tpu-v6e" is in no row of machines: did you mean tpu-v6e-slice?',
    ),
    "another kind": (
        {"prices": [{**V6E, "kind": "rent"}]},
        'catalogue.prices.0.kind: "rent" must be one of on_d',
    ),
}


@pytest.mark.parametrize(("rows", "said"), WRONG.values(), ids=WRONG)
def test_a_wrong_row_is_refused_by_its_field(rows: dict[str, Any], said: str) -> None:
    document = {"path": settings().path, "catalogue": rows}
    with pytest.raises(Permanent, match=re.escape(f"clusters/blue: {said}")):
        decode_settings(CLUSTER, document, "v")
