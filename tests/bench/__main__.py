"""`make bench`: ratios against floors that are measured in the same run; printed and stored, never asserted."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from tests.bench import (
    bursts,
    cold_starts,
    deciding,
    holding,
    idling,
    judging,
    measures,
    opening,
    path,
    reconciling,
    served_bursts,
    sweeping,
    watching,
)
from tests.bench.measures import Measure

PARTS: Mapping[str, Callable[[], Iterator[Measure]]] = {
    "deciding": deciding.rows,
    "judging": judging.rows,
    "watching": watching.rows,
    "holding": holding.rows,
    "opening": opening.rows,
    "idling": idling.rows,
    "cold starts": cold_starts.rows,
    "reconciling": reconciling.rows,
    "sweeping": sweeping.rows,
    "path": path.rows,
    "bursts on the stack": served_bursts.rows,
    "bursts": bursts.rows,
}


def main() -> None:
    run([PARTS[name] for name in sys.argv[1:] or PARTS])


def run(parts: Iterable[Callable[[], Iterator[Measure]]], folder: Path = measures.FOLDER) -> None:
    """Print each row once it is measured; store all of them, also if a part fails."""
    print(measures.heading())
    found = []
    try:
        for rows in parts:
            for row in rows():
                print(measures.line(row), flush=True)
                found.append(row)
    finally:
        print(f"\n{measures.store(found, folder)}")


if __name__ == "__main__":
    main()
