"""Where Google offers TPUs: the rows of `zones.tsv`. Where nothing is known of an accelerator, it has none."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from tpu_slices.domain.catalogue.rows import file_of, rows_of

COLUMNS = ("accelerator", "zone", "read", "source")


@functools.cache
def zones() -> Mapping[str, tuple[str, ...]]:
    """Return the zones by accelerator, in the order of the file: a plan for no cluster is made for the first."""
    found: dict[str, tuple[str, ...]] = {}
    for row in rows_of(file_of("zones.tsv"), "zones.tsv"):
        row.only(COLUMNS)
        row.day("read")
        row.text("source")
        label = row.text("accelerator")
        found[label] = (*found.get(label, ()), row.text("zone"))
    return found
