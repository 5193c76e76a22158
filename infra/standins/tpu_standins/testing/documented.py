"""The slices of TPUs that Google documents, in a table: each row names its source."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

TABLE = Path(__file__).with_name("tpu_catalogue.tsv")


def slices() -> Iterator[dict[str, str]]:
    """Yield the rows, values by column."""
    with TABLE.open(newline="", encoding="utf-8") as table:
        yield from csv.DictReader(table, delimiter="\t")
