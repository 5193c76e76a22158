"""`python -m tests.mutants [MODULE ...]`: how many small changes of the core the tests notice, with cosmic-ray.

Each module is changed at one place at a time, in a clone of the repository, and its own tests are run. What they let
pass is printed as a diff, and kept with the numbers in .local/mutants.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from tpu_standins.patience import PATIENCE_SECONDS

ROOT = Path(__file__).parents[2]
WORK = ROOT / ".local" / "mutants"
TOOLS = ROOT / ".local" / "cosmic-ray" / "bin"
DOMAIN = "shared/tpu_slices/domain"
RECONCILING, PLANNING, FLOWS = "tests/domain/reconciling", "tests/domain/planning", "tests/flows"
HANDLERS = "tests/functions/test_handlers.py"


@dataclass(frozen=True, slots=True)
class Module:
    path: str
    own: str
    """The files of tests that are about it, as a pattern: they notice most changes, and are run first."""
    others: tuple[str, ...]
    """Further files and folders of tests."""


MODULES = {
    "bind": Module(
        f"{DOMAIN}/reconciling/binding.py", "tests/domain/binding/test_*.py", (RECONCILING, "tests/domain/test_held.py")
    ),
    "giving_up": Module(
        f"{DOMAIN}/reconciling/giving_up.py", "tests/domain/binding/test_*.py", (RECONCILING, "tests/domain/returning")
    ),
    "taking": Module(
        f"{DOMAIN}/reconciling/taking.py", f"{RECONCILING}/test_taking.py", ("tests/domain/binding", "tests/flows")
    ),
    "deletion": Module(f"{DOMAIN}/reconciling/deletion.py", f"{RECONCILING}/test_deletion*.py", (RECONCILING,)),
    "ending": Module(f"{DOMAIN}/reconciling/ending.py", f"{RECONCILING}/test_ending.py", (RECONCILING,)),
    "decide": Module(
        f"{DOMAIN}/reconciling/decide.py",
        f"{RECONCILING}/test_decide*.py",
        (RECONCILING, "tests/domain/ownership", "tests/domain/test_held.py"),
    ),
    "demand": Module(
        f"{DOMAIN}/reconciling/demand.py",
        f"{RECONCILING}/test_demand*.py",
        (RECONCILING, "tests/domain/node_groups", FLOWS),
    ),
    "fit": Module(f"{DOMAIN}/planning/fit.py", f"{PLANNING}/test_fit.py", (PLANNING,)),
    "policy": Module(
        f"{DOMAIN}/planning/policy.py",
        f"{PLANNING}/test_policy.py",
        (PLANNING, f"{RECONCILING}/test_decide_allowed.py"),
    ),
    "sweep": Module(
        "shared/tpu_slices/flows/sweep.py",
        f"{FLOWS}/test_sweep*.py",
        (FLOWS, HANDLERS, "tests/functions/test_logs.py"),
    ),
}
CHANGES_NOTHING = (
    "core/ReplaceBinaryOperator_BitOr_.*",
    "core/ReplaceComparisonOperator_(Eq_Is|Is_Eq|NotEq_IsNot|IsNot_NotEq)$",
)
"""Nearly all of the first are in annotations, such as `int | None`; members of enums and small numbers that are equal
are the same object."""
SECONDS = PATIENCE_SECONDS
"""After which a change counts as noticed: the tests hang."""


@dataclass(frozen=True, slots=True)
class Result:
    mutants: int
    killed: int
    survivors: tuple[str, ...]
    """Diffs."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("modules", nargs="*", choices=[*MODULES, []], metavar="MODULE", help=f"of {', '.join(MODULES)}")
    names = parser.parse_args().modules or list(MODULES)
    WORK.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = dict(zip(names, pool.map(measured, names), strict=True))
    for name, result in results.items():
        for diff in result.survivors:
            print(f"--- survived in {name}\n{diff}")
    killed, mutants = (sum(getattr(each, key) for each in results.values()) for key in ("killed", "mutants"))
    for name, result in results.items():
        print(f"{name}: {result.killed} of {result.mutants}")
    print(f"killed {killed} of {mutants} mutants: {killed / max(mutants, 1):.1%}")
    return 0


def measured(name: str) -> Result:
    """Return what became of the mutants of a module; it is kept, too."""
    clone, session, config = WORK / name, WORK / f"{name}.sqlite", WORK / f"{name}.toml"
    shutil.rmtree(clone, ignore_errors=True)
    session.unlink(missing_ok=True)
    _run("git", "clone", "--quiet", "--shared", str(ROOT), str(clone), at=WORK)
    tests = _tests(MODULES[name], clone)
    _run("bash", "-c", tests, at=clone)  # they pass, and are compiled: cosmic-ray lets Python compile nothing
    config.write_text(_config(MODULES[name], tests))
    for command in (("cosmic-ray", "init", config, session), ("cr-filter-operators", session, config)):
        _run(*map(str, command), at=clone)
    _run("cosmic-ray", "exec", str(config), str(session), at=clone)
    result = _result(_run("cosmic-ray", "dump", str(session), at=clone))
    (WORK / f"{name}.json").write_text(json.dumps(asdict(result), indent=1))
    return result


def _tests(module: Module, clone: Path) -> str:
    """Return a command of a shell, which fails at the first test that does."""
    options = "-x -q -n0 -p no:randomly -p no:cacheprovider --hypothesis-profile=fast -m 'not slow and not emulators'"
    own = sorted(str(each.relative_to(clone)) for each in clone.glob(module.own))
    stages = (own, [*module.others, *(f"--ignore={each}" for each in own)])
    return " && ".join(f"{sys.executable} -m pytest {options} {' '.join(stage)}" for stage in stages)


def _config(module: Module, tests: str) -> str:
    return f"""\
[cosmic-ray]
module-path = {json.dumps(module.path)}
timeout = {SECONDS}
test-command = {json.dumps(f"bash -c {shlex.quote(tests)}")}
[cosmic-ray.distributor]
name = "local"
[cosmic-ray.filters.operators-filter]
exclude-operators = {json.dumps(CHANGES_NOTHING)}
"""


def _result(dump: str) -> Result:
    outcomes = [json.loads(line) for line in dump.splitlines()]
    tried = [result for _, result in outcomes if result and result["worker_outcome"] == "normal"]
    survived = tuple(_diff(result) for result in tried if result["test_outcome"] == "survived")
    return Result(len(tried), len(tried) - len(survived), survived)


def _diff(result: dict[str, object]) -> str:
    return "\n".join(_lines(str(result["diff"])))


def _lines(diff: str) -> Iterator[str]:
    yield from (line for line in diff.splitlines() if line[:1] in "+-@" and line[:3] not in {"+++", "---"})


def _run(command: str, *arguments: str, at: Path) -> str:
    """Return what a program printed, one of cosmic-ray's or another; raise SystemExit if it failed."""
    program = TOOLS / command
    environment = {**os.environ, "PYTHONPATH": f"{at / 'shared'}:{at}"}
    whole = [str(program) if program.exists() else command, *arguments]
    ended = subprocess.run(whole, cwd=at, env=environment, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(f"{' '.join(whole)}: {ended.stderr or ended.stdout}")
    return ended.stdout


if __name__ == "__main__":
    sys.exit(main())
