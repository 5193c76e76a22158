"""`make proof`: runs all parts, however one of them ends, and writes docs/proof.md. Exit code 1: a part failed.

What became of the parts is kept in .local/proof/COMMIT.json. `--page` writes the page of what is there already.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from tests.proof.page import PAGE, figures, measured, written
from tests.proof.parts import PARTS, Record, Result, clock, run, told, tried
from tests.simulation.commit import commit

FOLDER = Path(".local") / "proof"


def latest() -> Record | None:
    """Return what became of the parts when all were tried last."""
    files = sorted(FOLDER.glob("*.json"), key=lambda file: file.stat().st_mtime)
    if not files:
        return None
    found = json.loads(files[-1].read_text())
    return Record(found["commit"], found["day"], tuple(Result(**each) for each in found["results"]))


def proven() -> Record:
    """Run all parts, and keep what became of them."""
    results = tuple(tried(PARTS, run, clock))
    record = Record(commit(), f"{datetime.now(UTC):%-d %B %Y}", results)
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{record.commit}.json").write_text(json.dumps(asdict(record), indent=1))
    return record


def main() -> int:
    parser = argparse.ArgumentParser(prog="make proof", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--page", action="store_true", help="run nothing: write the page of what is there")
    record = latest() if parser.parse_args().page else proven()
    page = written(PAGE.read_text(), "figures", figures(measured()))
    PAGE.write_text(written(page, "parts", told(record)) if record else page)
    print(f"{PAGE} is written.")
    return 1 if record and not all(each.passed for each in record.results) else 0


if __name__ == "__main__":
    sys.exit(main())
