"""Text that people read: what tenants wrote, made safe to show, and what a person does next."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

_MOST_NAMED = 10


def plain(text: str) -> str:
    """Return a text in which control characters and those that change the direction are replaced by U+FFFD."""
    return "".join("\ufffd" if unicodedata.category(each)[0] == "C" and each != "\n" else each for each in text)


def natural(text: str) -> tuple[tuple[int, str], ...]:
    """Return a key that sorts numbers in texts as numbers: `llama-2` before `llama-10`."""
    return tuple(
        (int(each), "") if each.isascii() and each.isdigit() else (-1, each) for each in re.split(r"([0-9]+)", text)
    )


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """Return the known name that is most like a wrong one, as a question, and which there are."""
    alike = get_close_matches(name, known, n=1)
    there_are = f"there {'is' if len(known) == 1 else 'are'} {', '.join(known[:_MOST_NAMED])}"
    more = f" and {len(known) - _MOST_NAMED} more" if len(known) > _MOST_NAMED else ""
    return f"did you mean {alike[0]}? {there_are}{more}" if alike else f"{there_are}{more}"


@dataclass(frozen=True, slots=True)
class Step:
    """What a person does next: about subjects, such as clusters, of which more was told before."""

    what: str
    commands: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The subjects of commands; or else what is to be done."""
        about = ", ".join(self.subjects)
        if self.commands:
            return f"{about or self.what}:"
        return f"{about}: {self.what}" if about else self.what


def numbered(heading: str, steps: Iterable[Step]) -> Iterator[str]:
    """Yield a heading and the steps below it, those with the same commands as one; nothing if there are none."""
    merged: dict[tuple[str, ...], Step] = {}
    for step in steps:
        before = merged.setdefault(step.commands or (step.what,), step)
        subjects = dict.fromkeys((*before.subjects, *step.subjects))
        merged[step.commands or (step.what,)] = replace(before, subjects=tuple(subjects))
    if merged:
        yield heading
    for number, step in enumerate(merged.values(), 1):
        yield f"{number:>3}. {step.title}"
        yield from (f"{'':9}{command}" for command in step.commands)
