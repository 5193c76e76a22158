"""Impersonation: the headers that `kubectl --as` sends, for users who may.

Facts: k8s.io/apiserver/pkg/endpoints/filters/impersonation.go.
"""

from collections.abc import Iterator
from typing import Protocol
from urllib.parse import unquote

from infra.local.cluster.attributes import Attributes
from infra.local.cluster.authentication import (
    ANONYMOUS,
    AUTHENTICATED,
    UNAUTHENTICATED,
    User,
    account_groups,
    account_of,
)
from infra.local.cluster.authorization import require
from infra.local.cluster.errors import ApiError
from infra.local.cluster.rbac import Policies

_USER = "impersonate-user"
_UID = "impersonate-uid"
_GROUP = "impersonate-group"
_EXTRA = "impersonate-extra-"


class Headers(Protocol):
    """The headers of a request, by lower-case name."""

    def __iter__(self) -> Iterator[str]: ...

    def getlist(self, key: str) -> list[str]: ...


def assumed(policies: Policies, user: User, headers: Headers) -> User:
    """Return the user that a user acts as, by default himself. Raise ApiError 403 without the verb `impersonate`."""
    named = sorted({key for key in headers if key.startswith("impersonate-")})
    if not named:
        return user
    wanted = User(
        name=next(iter(headers.getlist(_USER)), ""),
        uid=next(iter(headers.getlist(_UID)), ""),
        groups=tuple(headers.getlist(_GROUP)),
        extra={unquote(k.removeprefix(_EXTRA)): tuple(headers.getlist(k)) for k in named if k.startswith(_EXTRA)},
    )
    if not wanted.name:
        message = f"requested {', '.join(named)} without impersonating a user"
        raise ApiError(500, "InternalError", f"Internal error occurred: {message}")
    for each in _asked(wanted):
        require(policies, user, each)
    return User(name=wanted.name, uid=wanted.uid, groups=_with_own(wanted), extra=wanted.extra)


def _asked(wanted: User) -> Iterator[Attributes]:
    """Yield the requests of which each must be allowed."""
    if account := account_of(wanted.name):
        yield Attributes(verb="impersonate", resource="serviceaccounts", namespace=account[0], name=account[1])
    else:
        yield Attributes(verb="impersonate", resource="users", name=wanted.name)
    for group in wanted.groups:
        yield Attributes(verb="impersonate", resource="groups", name=group)
    kept = {"verb": "impersonate", "group": "authentication.k8s.io", "version": "v1"}
    if wanted.uid:
        yield Attributes(**kept, resource="uids", name=wanted.uid)
    for key, values in wanted.extra.items():
        for value in values:
            yield Attributes(**kept, resource="userextras", subresource=key, name=value)


def _with_own(wanted: User) -> tuple[str, ...]:
    """Return the user's groups with those that every such user has."""
    groups = wanted.groups
    if not groups and (account := account_of(wanted.name)):
        groups = account_groups(account[0])
    if wanted.name == ANONYMOUS:
        return groups if UNAUTHENTICATED in groups else (*groups, UNAUTHENTICATED)
    known = {AUTHENTICATED, UNAUTHENTICATED} & set(groups)
    return groups if known else (*groups, AUTHENTICATED)
