"""What examples say of themselves: the answer of `slices plan`, in the comment at their top.

`python -m tests.examples.answers` writes there what it answers now, as after a change of prices.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from textwrap import wrap
from typing import Any

from click.testing import CliRunner

from infra.local.plan import REPOSITORY
from tpu_slices_cli.app import main
from tpu_slices_cli.skipping import SkipReason

_FOLDER = REPOSITORY / "examples"
_ASKED = re.compile(r"^# slices plan(?P<options>.*):\n(?P<answer>(#   .*\n)*)", re.MULTILINE)
"""The question, with its options, and the lines of the answer."""
REFUSED, PLANNED = (sorted((_FOLDER / name).glob("*.yaml")) for name in ("refused", "planned"))
EXAMPLES = [*REFUSED, *PLANNED, *(each for each in sorted(_FOLDER.glob("*.yaml")) if _ASKED.search(each.read_text()))]
"""All that have an answer at their top."""


def promised(example: Path) -> str:
    """Return the answer at the top of an example."""
    found = _ASKED.search(example.read_text())
    return " ".join(line.lstrip("# ") for line in found["answer"].splitlines()) if found else ""


def answer_of(example: Path) -> tuple[str, str]:
    """Return the reason and the message that an example of a refusal promises."""
    reason, _, message = promised(example).partition(": ")
    return reason, message


@cache
def planned(example: Path) -> tuple[int, dict[str, Any]]:
    """Return the exit code of `slices plan` with the options that an example names, and what it says in JSON."""
    found = _ASKED.search(example.read_text())
    options = [str(REPOSITORY / each) if "/" in each else each for each in found["options"].split()] if found else []
    result = CliRunner().invoke(main, ("plan", "-f", str(example), *options, "-o", "json"), prog_name="slices")
    return result.exit_code, json.loads(result.stdout)


def reasons(plan: dict[str, Any]) -> list[tuple[str, str]]:
    """Return why something gets no slice, but for documents that request no TPU: each reason with its message."""
    refused = [each["refused"] for each in plan["slices"] if each["refused"]]
    why = [(each["reason"], each["message"]) for each in (*refused, *plan["skipped"])]
    return [each for each in dict.fromkeys(why) if each[0] != SkipReason.REQUESTS_NO_TPU]


def answers(plan: dict[str, Any]) -> Iterator[str]:
    """Yield what there is to say of a plan: the slices, what is refused, skipped or invalid, and the warnings."""
    made = [each for each in plan["slices"] if not each["refused"]]
    if made:
        hosts, chips = (sum(each[part] for each in made) for part in ("hosts", "chips"))
        counts = {"slice": len(made), "host": hosts, "chip": chips}
        usd, unknown = plan["price"]["usd_per_hour"], plan["price"]["unknown"]
        price = [*([f"{usd:,.2f} USD/h"] if usd is not None else ()), *(["price unknown"] if unknown else ())]
        yield ", ".join([*(f"{count} {each}{'s' * (count != 1)}" for each, count in counts.items()), *price])
    yield from (f"{reason}: {message}" for reason, message in reasons(plan))
    yield from (f"invalid: {each['message']}" for each in plan["invalid"])
    yield from (each["message"] for each in plan["gangs"])
    yield from plan["notifications"]
    yield from (f"warning: {each}" for each in plan["warnings"])


def _renew(example: Path) -> None:
    wrapped = (
        wrap(f"#   {each}", 118, subsequent_indent="#     ", break_long_words=False, break_on_hyphens=False)
        for each in answers(planned(example)[1])
    )
    answer = "".join(f"{line}\n" for lines in wrapped for line in lines)
    text = _ASKED.sub(lambda found: f"# slices plan{found['options']}:\n{answer}", example.read_text(), count=1)
    example.write_text(text)


if __name__ == "__main__":
    for one in EXAMPLES:
        if promised(one) != " ".join(answers(planned(one)[1])):
            _renew(one)
