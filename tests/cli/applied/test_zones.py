"""`slices plan` warns of a slice in a zone where its accelerator is not known to be offered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from tests.cli.conftest import Slices
from tests.cli.test_plan_of_a_new_accelerator import SETTINGS, jobset, planned

HERE: dict[str, Any] = {
    "accelerator": "tpu-v4-podslice",
    "zone": "us-central1-c",
    "read": "2026-11-30",
    "source": "ours",
}
RESERVED = {"cloud_google_com__reservation-name": "hall-7"}


def warned(
    slices: Slices, folder: Path, *rows: dict[str, Any], accelerator: str = "tpu-v4-podslice", **more: str
) -> str:
    """Return the warnings of a slice in us-central1-c, by these rows of zones."""
    file = folder / "blue.yaml"
    file.write_text(yaml.safe_dump({**SETTINGS, "catalogue": {**SETTINGS["catalogue"], "zones": [*rows]}}))
    topology = "2x2x4" if accelerator == "tpu-v4-podslice" else "4x4"
    found = planned(slices, file, jobset(accelerator, topology, 4, **more))
    assert found["slices"][0]["refused"] is None
    return " ".join(each for each in found["warnings"] if "offered" in each)


def test_of_a_zone_without_a_row_with_those_that_have_one(slices: Slices, tmp_path: Path) -> None:
    assert warned(slices, tmp_path) == (
        "JobSet v5e, replicatedJob workers: tpu-v4-podslice is not known to be offered in us-central1-c, but in "
        "us-central2-b: select another zone, or add a row to catalogue.zones of the cluster's settings if it is "
        "offered to you there"
    )


def test_not_of_one_that_the_settings_add(slices: Slices, tmp_path: Path) -> None:
    assert warned(slices, tmp_path, HERE) == ""


def test_of_one_that_the_settings_take_back(slices: Slices, tmp_path: Path) -> None:
    taken_back = {**HERE, "zone": "us-central2-b", "offered": False}
    assert "in us-central1-c, but in no zone: " in warned(slices, tmp_path, taken_back)


def test_not_of_a_reservation_which_is_where_it_is(slices: Slices, tmp_path: Path) -> None:
    assert warned(slices, tmp_path, **RESERVED) == ""


def test_not_of_an_accelerator_of_which_no_row_says_where_it_is(slices: Slices, tmp_path: Path) -> None:
    assert warned(slices, tmp_path, accelerator="tpu9x") == ""
