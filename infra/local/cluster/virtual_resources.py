"""Resources that are never stored, only answered: reviews and token requests (a table)."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from infra.local.cluster.resources import Resource


@dataclass(frozen=True, slots=True, kw_only=True)
class Virtual:
    """A kind that is answered and not stored. `api_version` is that of the path, `group` that of the kind."""

    api_version: str
    plural: str
    kind: str
    group: str
    subresource: str = ""

    @property
    def name(self) -> str:
        return f"{self.plural}/{self.subresource}" if self.subresource else self.plural

    @property
    def singular(self) -> str:
        return "" if self.subresource else self.kind.lower()

    @property
    def shape(self) -> Resource:
        """Return the resource that the body must be an object of."""
        return Resource(
            group=self.group,
            version=self.api_version.rpartition("/")[2],
            plural=self.name,
            kind=self.kind,
            namespaced=bool(self.subresource),
            has_status=True,
        )


_AUTHENTICATION = "authentication.k8s.io"
_AUTHORIZATION = "authorization.k8s.io"


def _review(group: str, plural: str, kind: str, version: str = "v1") -> Virtual:
    return Virtual(api_version=f"{group}/{version}", plural=plural, kind=kind, group=group)


_TABLE = (
    Virtual(
        api_version="v1", plural="serviceaccounts", kind="TokenRequest", group=_AUTHENTICATION, subresource="token"
    ),
    _review(_AUTHENTICATION, "selfsubjectreviews", "SelfSubjectReview"),
    # The only version that kubectl 1.27 requests; clusters serve it if beta APIs are enabled.
    _review(_AUTHENTICATION, "selfsubjectreviews", "SelfSubjectReview", "v1beta1"),
    _review(_AUTHORIZATION, "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    _review(_AUTHORIZATION, "selfsubjectrulesreviews", "SelfSubjectRulesReview"),
    _review(_AUTHORIZATION, "subjectaccessreviews", "SubjectAccessReview"),
)

VIRTUAL: Mapping[tuple[str, str], Virtual] = MappingProxyType({(each.api_version, each.name): each for each in _TABLE})
"""By group version of the path, and by name with the subresource."""
