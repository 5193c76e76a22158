"""Authorization: whether a user may make a request, and the message of a refusal (pure).

Facts: k8s.io/apiserver/pkg/authorization/authorizerfactory (privileged groups) and
pkg/endpoints/handlers/responsewriters/errors.go.
"""

from dataclasses import dataclass

from infra.local.cluster import rbac
from infra.local.cluster.attributes import Attributes
from infra.local.cluster.authentication import MASTERS, User
from infra.local.cluster.errors import ApiError, qualified
from infra.local.cluster.rbac import Dangling, Policies

_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


@dataclass(frozen=True, slots=True)
class Decision:
    allowed: bool
    reason: str = ""


def decide(policies: Policies, user: User, wanted: Attributes) -> Decision:
    """Decide by the user's groups, then by RBAC. `reason` names the binding that allows it, or the missing roles."""
    if MASTERS in user.groups:
        return Decision(allowed=True)
    missing: list[str] = []
    for grant in rbac.grants(policies, user, wanted.namespace):
        if isinstance(grant, Dangling):
            missing.append(grant.why)
        elif rbac.allows(grant.rule, wanted):
            return Decision(allowed=True, reason=f"RBAC: allowed by {grant.source}")
    return Decision(allowed=False, reason=f"RBAC: {aggregated(missing)}" if missing else "")


def aggregated(errors: list[str]) -> str:
    """Return several errors as one message, as k8s.io/apimachinery/pkg/util/errors.Aggregate does."""
    distinct = list(dict.fromkeys(errors))
    return distinct[0] if len(distinct) == 1 else "[" + ", ".join(distinct) + "]"


def require(policies: Policies, user: User, wanted: Attributes) -> None:
    """Raise ApiError 403 unless the user may make the request."""
    decision = decide(policies, user, wanted)
    if not decision.allowed:
        raise _forbidden(user, wanted, decision.reason)


def _forbidden(user: User, wanted: Attributes, reason: str) -> ApiError:
    why = _cannot(user, wanted).translate(_ESCAPES) + (f": {reason}" if reason else "")
    if not wanted.resource:
        return ApiError(403, "Forbidden", f"forbidden: {why}")
    what = qualified(wanted.resource, wanted.group) + (f' "{wanted.name}"' if wanted.name else "")
    details = {"name": wanted.name, "group": wanted.group, "kind": wanted.resource}
    said = {key: value for key, value in details.items() if value}
    return ApiError(403, "Forbidden", f"{what} is forbidden: {why}", said)


def _cannot(user: User, wanted: Attributes) -> str:
    if not wanted.resource:
        return f'User "{user.name}" cannot {wanted.verb} path "{wanted.path}"'
    where = f'in the namespace "{wanted.namespace}"' if wanted.namespace else "at the cluster scope"
    resource = f'resource "{wanted.combined}" in API group "{wanted.group}"'
    return f'User "{user.name}" cannot {wanted.verb} {resource} {where}'
