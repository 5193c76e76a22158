"""The filters before a request's verb: authentication, impersonation, authorization.

The order is that of k8s.io/apiserver (pkg/server/config.go, DefaultBuildHandlerChain).
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from infra.local.cluster import attributes, bodies, errors, impersonation
from infra.local.cluster.api import Answer, Call
from infra.local.cluster.authentication import Authenticator, User
from infra.local.cluster.authorization import require
from infra.local.cluster.impersonation import Headers
from infra.local.cluster.rbac import Policies
from infra.local.cluster.reviews import Question, Reviews
from infra.local.cluster.virtual_resources import VIRTUAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The caller's side of a request: its headers, and whether it came over TLS."""

    headers: Headers
    secure: bool


class Filters:
    def __init__(self, policies: Policies, authenticator: Authenticator, clock: Callable[[], datetime]) -> None:
        self._policies = policies
        self._authenticator = authenticator
        self._reviews = Reviews(policies, authenticator, clock)

    def admit(self, caller: Caller, call: Call) -> User:
        """Return the acting user. Raise ApiError 401 if the caller is unknown, 403 if the request is not allowed."""
        authorization = next(iter(caller.headers.getlist("authorization")), "")
        sender = self._authenticator.user(authorization, secure=caller.secure)
        user = impersonation.assumed(self._policies, sender, caller.headers)
        require(self._policies, user, attributes.read(call.method, call.path, call.params))
        return user

    def answered(self, user: User, call: Call) -> Answer | None:
        """Return the response to a review or token request; None: the request is for stored objects."""
        about = attributes.read(call.method, call.path, call.params)
        api_version = f"{about.group}/{about.version}" if about.group else about.version
        virtual = VIRTUAL.get((api_version, about.combined))
        if virtual is None:
            return None
        if call.method != "POST" or bool(about.name) is not bool(virtual.subresource):
            message = "the server does not allow this method on the requested resource"
            raise errors.ApiError(405, "MethodNotAllowed", message)
        if call.params.get("dryRun"):
            raise errors.not_implemented(f'dryRun of the verb "create" on {call.path}')
        parsed = bodies.parse(call.body, call.content_type)
        body = bodies.read(virtual.shape, parsed, call.params.get("fieldValidation", ""))
        answered = self._reviews.answer(Question(user=user, asked=body.object, about=about))
        return Answer(code=201, body=answered, warnings=body.warnings)
