"""Reviews of access, rules and identity (kubectl auth can-i, auth whoami), and token requests.

Facts: pkg/registry/authorization, pkg/registry/authentication, pkg/registry/core/serviceaccount/storage/token.go,
pkg/apis/authorization/validation, pkg/apis/authentication/validation.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any

from infra.local.cluster import errors, rbac
from infra.local.cluster.attributes import Attributes
from infra.local.cluster.authentication import AUDIENCE, Authenticator, User
from infra.local.cluster.authorization import aggregated, decide
from infra.local.cluster.errors import FieldError
from infra.local.cluster.objects import timestamp
from infra.local.cluster.rbac import Dangling, Policies

_LEAST_SECONDS = 600
_MOST_SECONDS = 1 << 32
_SECONDS = 3600
_SELECTORS = ("fieldSelector", "labelSelector")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A review request: the user, the object in the body, and the attributes of the path."""

    user: User
    asked: dict[str, Any]
    about: Attributes


class Reviews:
    def __init__(self, policies: Policies, authenticator: Authenticator, clock: Callable[[], datetime]) -> None:
        self._policies = policies
        self._authenticator = authenticator
        self._clock = clock

    def answer(self, question: Question) -> dict[str, Any]:
        """Return the object with its status. Raise ApiError 400 or 422 for an invalid request."""
        answers: Mapping[str, Callable[[Question], dict[str, Any]]] = MappingProxyType(
            {
                "SelfSubjectReview": self._who_am_i,
                "SelfSubjectAccessReview": self._may_i,
                "SubjectAccessReview": self._may_another,
                "SelfSubjectRulesReview": self._what_may_i,
                "TokenRequest": self._token,
            }
        )
        asked = question.asked
        metadata = {"creationTimestamp": timestamp(self._clock())} | (asked.get("metadata") or {})
        return asked | {"metadata": metadata} | answers[asked["kind"]](question)

    def _who_am_i(self, question: Question) -> dict[str, Any]:
        user = question.user
        info = {
            "username": user.name,
            "uid": user.uid,
            "groups": list(user.groups),
            "extra": {key: list(values) for key, values in user.extra.items()},
        }
        return {"status": {"userInfo": {key: value for key, value in info.items() if value}}}

    def _may_i(self, question: Question) -> dict[str, Any]:
        return self._decided(question.user, question)

    def _may_another(self, question: Question) -> dict[str, Any]:
        spec = question.asked["spec"]
        groups = tuple(spec.get("groups") or ())
        if not spec.get("user") and not groups:
            cause = FieldError(
                "spec.user", "FieldValueInvalid", 'Invalid value: "": at least one of user or group must be specified'
            )
            raise _invalid(question, cause)
        extra = {key: tuple(values) for key, values in (spec.get("extra") or {}).items()}
        return self._decided(
            User(name=spec.get("user", ""), uid=spec.get("uid", ""), groups=groups, extra=extra), question
        )

    def _decided(self, user: User, question: Question) -> dict[str, Any]:
        decision = decide(self._policies, user, _wanted(question))
        reason = {"reason": decision.reason} if decision.reason else {}
        return {"status": {"allowed": decision.allowed} | reason}

    def _what_may_i(self, question: Question) -> dict[str, Any]:
        namespace = question.asked["spec"].get("namespace", "")
        if not namespace:
            raise errors.bad_request("no namespace on request")
        resource_rules, url_rules, missing = [], [], []
        for grant in rbac.grants(self._policies, question.user, namespace):
            if isinstance(grant, Dangling):
                missing.append(grant.why)
            elif grant.rule.get("nonResourceURLs"):
                url_rules.append(dict(grant.rule))
            else:
                resource_rules.append(dict(grant.rule))
        status = {"resourceRules": resource_rules, "nonResourceRules": url_rules, "incomplete": bool(missing)}
        return {"status": status | ({"evaluationError": aggregated(missing)} if missing else {})}

    def _token(self, question: Question) -> dict[str, Any]:
        about, spec = question.about, question.asked.get("spec") or {}
        account = self._policies.get("serviceaccounts", about.namespace, about.name)
        if spec.get("boundObjectRef"):
            raise errors.not_implemented("tokens bound to an object (spec.boundObjectRef)")
        seconds = spec.get("expirationSeconds") or _SECONDS
        _check_seconds(question, seconds)
        audiences = spec.get("audiences") or [AUDIENCE]
        token, expires = self._authenticator.issue(account, audiences, seconds)
        created = {"creationTimestamp": timestamp(self._clock()), "name": about.name, "namespace": about.namespace}
        return {
            "metadata": created,
            "spec": {"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": None},
            "status": {"token": token, "expirationTimestamp": timestamp(expires)},
        }


def _wanted(question: Question) -> Attributes:
    spec = question.asked["spec"]
    resource, url = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and url is not None:
        why = "Invalid value: cannot be specified in combination with resourceAttributes"
        raise _invalid(question, FieldError("spec.nonResourceAttributes", "FieldValueInvalid", why))
    if url is not None:
        return Attributes(verb=url.get("verb", ""), path=url.get("path", ""))
    if resource is None:
        why = "Invalid value: exactly one of nonResourceAttributes or resourceAttributes must be specified"
        raise _invalid(question, FieldError("spec.resourceAttributes", "FieldValueInvalid", why))
    for selector in _SELECTORS:
        if resource.get(selector):
            raise errors.not_implemented(f"{selector} of ResourceAttributes")
    named = ("verb", "group", "version", "resource", "subresource", "namespace", "name")
    return Attributes(**{"verb": ""} | {key: resource[key] for key in named if key in resource})


def _check_seconds(question: Question, seconds: int) -> None:
    path = "spec.expirationSeconds"
    if seconds < _LEAST_SECONDS:
        why = f"Invalid value: {seconds}: may not specify a duration less than 10 minutes"
        raise _invalid(question, FieldError(path, "FieldValueInvalid", why))
    if seconds > _MOST_SECONDS:
        why = f"Invalid value: {seconds}: may not specify a duration larger than 2^32 seconds"
        raise _invalid(question, FieldError(path, "FieldValueInvalid", why))


def _invalid(question: Question, cause: FieldError) -> errors.ApiError:
    group = question.asked["apiVersion"].partition("/")[0]
    return errors.invalid(question.asked["kind"], group, "", [cause])
