"""What is missing, and how it is told."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from infra.preflight.answers import Answer, Denied, Unreachable, unknown
from tpu_slices_cli.text import Step, numbered

_INDENT = " " * 11
_AGAIN = Step("Run this again, or submit the build again if this was its step.")


class Severity(StrEnum):
    ERROR = "ERROR"
    """The deployment would fail, or serve nobody."""
    WARNING = "WARNING"
    """It would work, with a defect that somebody should know of."""
    NOTE = "NOTE"
    """Nothing is known to be wrong; somebody may have to look elsewhere."""


@dataclass(frozen=True, slots=True)
class Finding:
    severity: Severity
    message: str
    remedies: tuple[str, ...] = ()
    """Commands, or lines to write into a file."""


@dataclass(frozen=True, slots=True)
class Section:
    """What was found of one subject, such as a cluster."""

    subject: str
    findings: tuple[Finding, ...]


def error(message: str, *remedies: str) -> Finding:
    return Finding(Severity.ERROR, message, remedies)


def warning(message: str, *remedies: str) -> Finding:
    return Finding(Severity.WARNING, message, remedies)


def note(message: str, *remedies: str) -> Finding:
    return Finding(Severity.NOTE, message, remedies)


def unread(what: str, answer: Answer) -> Iterator[Finding]:
    """Yield that it could not be found out, if so. What is not known may be well: it is no error."""
    if isinstance(answer, Denied | Unreachable):
        yield warning(f"It could not be read {what}: {unknown(answer)}")


def count(sections: Iterable[Section], severity: Severity) -> int:
    return sum(finding.severity is severity for section in sections for finding in section.findings)


def report(sections: Sequence[Section], follows: str = "") -> str:
    """Return all findings as text: by subject, each with its remedies below it, and what a person does next, in order.

    `follows`: what does if nothing is in the way.
    """
    lines = [line for section in sections for line in _section(section)]
    errors, warnings = count(sections, Severity.ERROR), count(sections, Severity.WARNING)
    lines.append(f"{_amount(errors, 'error')}, {_amount(warnings, 'warning')}.")
    return "\n".join([*lines, *_next(sections, follows), ""])


def _next(sections: Sequence[Section], follows: str) -> Iterator[str]:
    """Yield what mends each error, then what mends what is not in the way."""
    urgent = [Step(finding.message, finding.remedies, (about,)) for about, finding in _of(sections, Severity.ERROR)]
    last = [_AGAIN] if urgent else [Step(follows)] if follows else []
    yield from numbered("Next:", [*urgent, *last])
    others = (*_of(sections, Severity.WARNING), *_of(sections, Severity.NOTE))
    later = [Step(finding.message, finding.remedies, (about,)) for about, finding in others if finding.remedies]
    yield from numbered("Not in the way of that:" if last else "When you can:", later)


def _of(sections: Iterable[Section], severity: Severity) -> Iterator[tuple[str, Finding]]:
    """Yield the findings of a severity, each with its subject."""
    for section in sections:
        yield from ((section.subject, each) for each in section.findings if each.severity is severity)


def _section(section: Section) -> list[str]:
    if not section.findings:
        return [f"{section.subject}: nothing is missing"]
    lines = [f"{section.subject}:"]
    for finding in section.findings:
        lines.append(f"  {finding.severity:<8} {finding.message}")
        lines.extend(_INDENT + remedy for remedy in finding.remedies)
    return lines


def _amount(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
