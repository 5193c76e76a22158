"""Where Google offers TPUs: the rows of `zones.tsv`, and those of a cluster's settings (`catalogue.zones`)."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping

from tpu_slices.domain.catalogue.rows import Cells, Row, file_of, rows_of, rows_of_settings

COLUMNS = ("accelerator", "zone", "offered", "read", "source")
_ZONE = re.compile(r"[a-z]+-[a-z]+\d+-[a-z0-9]+")

Zones = Mapping[str, tuple[str, ...]]
"""By accelerator, in the order of the rows: a plan for no cluster is made for the first. Of what has no row, nothing is
known."""


@functools.lru_cache(maxsize=8)
def zones_with(rows: tuple[Cells, ...] = ()) -> Zones:
    """Return the zones of the catalogue with those of settings, which replace them; raise WrongRow."""
    known = _once(rows_of(file_of("zones.tsv"), "zones.tsv"))
    own = _once(rows_of_settings("zones", rows))
    found: dict[str, tuple[str, ...]] = {}
    for (accelerator, zone), offered in {**known, **own}.items():
        found[accelerator] = (*found.get(accelerator, ()), *([zone] if offered else []))
    return found


def _once(rows: Iterable[Row]) -> dict[tuple[str, str], bool]:
    """Return of each accelerator and zone whether it is offered there: as the row says, yes if it does not say."""
    found: dict[tuple[str, str], bool] = {}
    for row in rows:
        row.only(COLUMNS)
        row.day("read")
        row.text("source")
        zone = row.text("zone")
        if not _ZONE.fullmatch(zone):
            row.fail("zone", f'"{zone}" must be the name of a zone, such as us-central2-b')
        key = row.text("accelerator"), zone
        if key in found:
            row.fail("zone", f"there is a row for {' '.join(key)} already: remove one of them")
        found[key] = row.flag("offered") is not False
    return found
