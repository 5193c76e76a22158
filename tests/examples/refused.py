"""What the examples of refusals say of themselves: the answer of `slices plan`, in the comment at their top."""

from __future__ import annotations

from pathlib import Path

from infra.local.plan import REPOSITORY

EXAMPLES = sorted((REPOSITORY / "examples" / "refused").glob("*.yaml"))
_ANSWER = "# slices plan:\n"


def answer_of(example: Path) -> tuple[str, str]:
    """Return the reason and the message that an example promises."""
    _, _, rest = example.read_text().partition(_ANSWER)
    lines: list[str] = []
    for line in rest.splitlines():
        if not line.startswith("#   "):
            break
        lines.append(line.removeprefix("#").strip())
    reason, _, message = " ".join(lines).partition(": ")
    return reason, message
