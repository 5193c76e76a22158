"""What is created only to be answered, and stored nowhere: reviews and requests for tokens (a table)."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from infra.local.cluster.resources import Resource


@dataclass(frozen=True, slots=True, kw_only=True)
class Virtual:
    """A kind that is answered at once. `api_version` is the path's, `group` that of the kind."""

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
        """What a body has to be."""
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
    # All that kubectl 1.27 asks for; a cluster has it where beta APIs are switched on.
    _review(_AUTHENTICATION, "selfsubjectreviews", "SelfSubjectReview", "v1beta1"),
    _review(_AUTHORIZATION, "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    _review(_AUTHORIZATION, "selfsubjectrulesreviews", "SelfSubjectRulesReview"),
    _review(_AUTHORIZATION, "subjectaccessreviews", "SubjectAccessReview"),
)

VIRTUAL: Mapping[tuple[str, str], Virtual] = MappingProxyType({(each.api_version, each.name): each for each in _TABLE})
"""By group and version of the path, and by name with the subresource."""
