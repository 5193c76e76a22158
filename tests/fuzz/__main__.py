"""`python -m tests.fuzz SECONDS [PARSER ...]`: fuzzes parsers one after the other, guided by coverage, with atheris.

A parser's turn ends with the first finding, which is printed. Inputs that reached something new stay in .local/fuzz.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["tpu_slices", "tpu_slices_cli", "relay"]):
    from tests.fuzz.fuzzing import fuzzed
    from tests.fuzz.parsers import PARSERS

CORPUS = Path(__file__).parents[2] / ".local" / "fuzz"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("seconds", type=int, help="for each parser")
    parser.add_argument("parsers", nargs="*", metavar="PARSER", help=f"default: all of {', '.join(PARSERS)}")
    asked = parser.parse_args()
    names = asked.parsers or list(PARSERS)
    if unknown := set(names) - set(PARSERS):
        parser.error(f"no such parser: {', '.join(sorted(unknown))}")
    if len(names) > 1:  # the fuzzer ends the process
        each = ([sys.executable, "-m", "tests.fuzz", str(asked.seconds), name] for name in names)
        return max(subprocess.run(command, check=False).returncode for command in each)
    _fuzz(names[0], asked.seconds)
    return 0


def _fuzz(name: str, seconds: int) -> None:
    folder = CORPUS / name.replace(": ", "-").replace(" ", "-")
    folder.mkdir(parents=True, exist_ok=True)
    one_input = fuzzed(PARSERS[name]).hypothesis.fuzz_one_input
    atheris.Setup(
        [sys.argv[0], str(folder), f"-max_total_time={seconds}", f"-artifact_prefix={folder}-found-", "-max_len=4096"],
        one_input,
    )
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
