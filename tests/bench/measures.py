"""What `make bench` prints and stores: measures beside the floor of the same run."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from infra.local.plan import REPOSITORY

RUNS = 7
FOLDER = REPOSITORY / ".local" / "bench"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One row. `least` and `median` of what was measured, and of its floor, in `unit`; None: it has no floor."""

    name: str
    unit: str
    least: float
    median: float
    floor_least: float | None = None
    floor_median: float | None = None
    load: float
    """The machine's load average of the last minute, when the row was measured."""

    @property
    def ratio(self) -> float | None:
        """Return the ratio of the medians."""
        return self.median / self.floor_median if self.floor_median else None


def measure(name: str, unit: str, found: Sequence[float], floor: Sequence[float] = ()) -> Measure:
    """Return the row of what was measured several times."""
    return Measure(
        name=name,
        unit=unit,
        least=min(found),
        median=statistics.median(found),
        floor_least=min(floor) if floor else None,
        floor_median=statistics.median(floor) if floor else None,
        load=os.getloadavg()[0],
    )


def cpu_seconds(step: Callable[[], object], runs: int = RUNS) -> list[float]:
    """Return the process time of each run of a step, after one that is not counted."""
    step()
    found = []
    for _ in range(runs):
        began = time.process_time()
        step()
        found.append(time.process_time() - began)
    return found


def heading() -> str:
    return f"{'':58} {'least':>9} {'median':>9} {'floor':>9} {'ratio':>6} {'load':>5}"


def line(row: Measure) -> str:
    floor = "" if row.floor_median is None else f"{row.floor_median:.4g}"
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
    name = f"{row.name}, {row.unit}"
    return f"{name:58} {row.least:>9.4g} {row.median:>9.4g} {floor:>9} {ratio:>6} {row.load:>5.2f}"


def store(rows: Iterable[Measure], folder: Path = FOLDER) -> Path:
    """Write the rows as JSON, named by the commit that was measured; return the file."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short=12", "HEAD"], cwd=REPOSITORY, capture_output=True, text=True, check=False
    ).stdout.strip()
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{commit or 'unknown'}.json"
    measured = {"commit": commit, "at": datetime.now(UTC).isoformat(), "cores": os.cpu_count()}
    file.write_text(json.dumps({**measured, "rows": [asdict(row) | {"ratio": row.ratio} for row in rows]}, indent=1))
    return file
