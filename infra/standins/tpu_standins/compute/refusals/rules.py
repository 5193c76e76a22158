"""The types of a rule, and the rows that all resources share."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from tpu_standins.cloud.names import is_name
from tpu_standins.cloud.rules import LIMIT, OURS, Covered, Row, first, not_covered, strays
from tpu_standins.compute.errors import Refusal
from tpu_standins.compute.paths import Resource
from tpu_standins.compute.state import State


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What a rule may read: the state, the resource that a call is about, and the call's body."""

    state: State
    now: float
    path: Resource
    body: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(Row[Ask]):
    """One row, and the error with which it refuses: its code in HTTP, and Compute's word for it."""

    code: HTTPStatus = HTTPStatus.BAD_REQUEST
    reason: str = "invalid"


def first_refusal(ask: Ask, rules: Iterable[Rule]) -> Refusal | None:
    if (found := first(ask, rules)) is None:
        return None
    rule, text = found
    return Refusal(code=rule.code, reason=rule.reason, message=text, rule=rule.name)


def invalid_value(field: str, value: object, why: str) -> str:
    return f"Invalid value for field '{field}': '{value}'. {why}"


def missing(field: str) -> str:
    return f"Required field '{field}' not specified"


def limit(check: Callable[[Ask], str | None], name: str, why: str = "") -> Rule:
    """Return the row that refuses what the local Compute Engine does not cover."""
    fact = f"{LIMIT}: {why}" if why else LIMIT
    code = HTTPStatus.NOT_IMPLEMENTED
    return Rule(name=name, code=code, reason="notImplemented", fact=fact, words=OURS, check=check)


def covers(covered: Covered) -> Rule:
    """Return the row that refuses all fields of a body but these."""
    return limit(lambda ask: not_covered(strays(ask.body, covered, "resource"), "Compute Engine"), "field-not-covered")


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
