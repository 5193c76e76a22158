"""The types of a rule, and the rows that all resources share."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from infra.local.compute.errors import Refusal
from infra.local.compute.paths import Resource, is_name
from infra.local.compute.state import State

OURS = "ours"
"""Compute's wording is not known from any source: this one is plausible, and no client should match on it."""

Covered = Mapping[str, Any]
"""The fields of a message that are supported, each with those of the message that it holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What a rule may read: the state, the resource that a call is about, and the call's body."""

    state: State
    now: float
    path: Resource
    body: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One row. `check` returns the message of the refusal, or None.

    `fact`: the source that says that Compute refuses this. `words`: the source of its wording, or OURS.
    """

    name: str
    fact: str
    words: str
    check: Callable[[Ask], str | None]
    code: HTTPStatus = HTTPStatus.BAD_REQUEST
    reason: str = "invalid"


def first_refusal(ask: Ask, rules: Iterable[Rule]) -> Refusal | None:
    for rule in rules:
        text = rule.check(ask)
        if text is not None:
            return Refusal(code=rule.code, reason=rule.reason, message=text, rule=rule.name)
    return None


def invalid_value(field: str, value: object, why: str) -> str:
    return f"Invalid value for field '{field}': '{value}'. {why}"


def missing(field: str) -> str:
    return f"Required field '{field}' not specified"


def strays(message: Any, covered: Covered, where: str = "resource") -> Iterator[str]:
    """Yield the fields of one of Google's messages that are given and not covered."""
    yield from _strays(type(message).pb(message), covered, where)


def _strays(message: Any, covered: Covered, where: str) -> Iterator[str]:
    for field, value in message.ListFields():
        name = f"{where}.{field.json_name}"
        known = field.name.rstrip("_")
        if known not in covered:
            yield name
        elif inner := covered[known]:
            several = [value] if hasattr(value, "ListFields") else value
            for each in several:
                yield from _strays(each, inner, name)


def not_covered(covered: Covered) -> Rule:
    def check(ask: Ask) -> str | None:
        found = list(strays(ask.body, covered))
        return f"Not implemented by the local Compute Engine: {', '.join(found)}." if found else None

    return Rule(
        name="field-not-covered",
        fact="a limit of the stand-in",
        words=OURS,
        check=check,
        code=HTTPStatus.NOT_IMPLEMENTED,
        reason="notImplemented",
    )


def _bad_name(ask: Ask) -> str | None:
    if not ask.path.name:
        return missing("resource.name")
    if is_name(ask.path.name):
        return None
    expected = "Must be a match of regex '(?:[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)'"
    return invalid_value("resource.name", ask.path.name, expected)


def _long_description(ask: Ask) -> str | None:
    length = len(ask.body.description)
    return invalid_value("resource.description", "…", "Too long: at most 2048 characters.") if length > 2048 else None


def _exists(ask: Ask) -> str | None:
    state = ask.state
    taken = ask.path in state.policies or ask.path in state.templates or ask.path in state.groups
    coming = any(op.target == ask.path and op.ended is None for op in state.operations.values())
    return f"The resource '{ask.path}' already exists" if taken or coming else None


def _unknown(ask: Ask) -> str | None:
    state = ask.state
    shown: tuple[Mapping[Resource, Any], ...] = (state.templates, state.groups)
    known = ask.path in state.policies or any(ask.path in each and each[ask.path].ready <= ask.now for each in shown)
    return None if known else f"The resource '{ask.path}' was not found"


def _in_use(ask: Ask) -> str | None:
    users = ask.state.users(ask.path)
    kind = {"instanceTemplates": "instance_template", "resourcePolicies": "resource_policy"}[ask.path.collection]
    used = f"The {kind} resource '{ask.path}' is already being used by"
    return f"{used} '{users[0].path}'" if users else None


def _busy(ask: Ask) -> str | None:
    return f"The resource '{ask.path}' is not ready" if ask.state.busy(ask.path) else None


BAD_NAME = Rule(
    name="bad-name",
    fact="[py-gce name of each resource] 1 to 63 characters of RFC 1035",
    words="hashicorp/terraform-provider-google, many threads",
    check=_bad_name,
)
LONG_DESCRIPTION = Rule(
    name="long-description",
    fact="[doc:reference/rest/v1] descriptions of at most 2048 characters; which methods check it is not known",
    words=OURS,
    check=_long_description,
)
EXISTS = Rule(
    name="already-exists",
    code=HTTPStatus.CONFLICT,
    reason="alreadyExists",
    fact="[mm] an insert of a name that is taken; a resource whose insert or delete runs counts",
    words="hashicorp/terraform-provider-google, many threads",
    check=_exists,
)
UNKNOWN = Rule(
    name="unknown-resource",
    code=HTTPStatus.NOT_FOUND,
    reason="notFound",
    fact="[mm]",
    words="mattes/gce-deploy-action#1",
    check=_unknown,
)
IN_USE = Rule(
    name="in-use",
    reason="resourceInUseByAnotherResource",
    fact="tf#6277, tf#1601: at once, not in an operation; for policies by analogy",
    words="terraform-google-modules/terraform-google-vm#45",
    check=_in_use,
)
BUSY = Rule(
    name="not-ready",
    reason="resourceNotReady",
    fact="[doc:troubleshooting/service-error-catalog] a resource on which an operation runs is not ready for another",
    words="GKE, in public notes: \"The resource '…/networks/default' is not ready\"",
    check=_busy,
)
