"""Names, paths and links of Compute Engine's resources. A path is a link without its beginning: `projects/P/…`."""

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime

from tpu_standins.cloud.names import suffix

_LINK = "https://www.googleapis.com/compute/v1/"
_BEGINNINGS = (_LINK, "https://compute.googleapis.com/compute/v1/", "//compute.googleapis.com/")
_RESOURCE = re.compile(
    r"projects/(?P<project>[^/]+)/(?P<scope>global|(?:zones|regions)/[^/]+)/(?P<collection>[A-Za-z]+)/(?P<name>[^/]+)"
)
_STEP = 1_000_003  # coprime to 36 ** 4: the names of a group's instances are all different


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource's place. `scope` is `global`, `regions/R` or `zones/Z`."""

    project: str
    scope: str
    collection: str
    name: str

    def __str__(self) -> str:
        return f"projects/{self.project}/{self.scope}/{self.collection}/{self.name}"

    @property
    def link(self) -> str:
        return link(str(self))

    @property
    def location(self) -> str:
        """Return the name of zone or region; empty if it is global."""
        return self.scope.partition("/")[2]


def parse(path: str) -> Resource | None:
    found = _RESOURCE.fullmatch(path)
    return Resource(**found.groupdict()) if found else None


def parse_link(text: str, project: str) -> Resource | None:
    """Parse a full or partial URL of a resource; what leaves out the project is of this one [py-gce]."""
    for beginning in _BEGINNINGS:
        text = text.removeprefix(beginning)
    return parse(text if text.startswith("projects/") else f"projects/{project}/{text}")


def link(path: str) -> str:
    return f"{_LINK}{path}"


def scope_path(project: str, scope: str) -> str:
    return f"projects/{project}/{scope}"


def region_of(zone: str) -> str:
    return zone.rpartition("-")[0]


def number(text: str) -> int:
    """Return an identifier as the server would choose it: 19 digits, which depend on the text alone."""
    return 10**18 + int(hashlib.sha256(text.encode()).hexdigest(), 16) % (8 * 10**18)


def operation_name(now: float, token: str) -> str:
    """Return a name such as `operation-1679505026572-5f7800ead2f20-2db2e0df-0f9dda11` (seen in public audit logs)."""
    digest = hashlib.sha256(token.encode()).hexdigest()
    return f"operation-{int(now * 1000)}-{digest[:13]}-{digest[13:21]}-{digest[21:29]}"


def timestamp(at: float) -> str:
    """Return RFC 3339 text with milliseconds."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")


def instance_name(base: str, seed: str, index: int) -> str:
    """Return `BASE-8gmv`: a hyphen and four characters, different for each index [py-gce base_instance_name]."""
    first = int(hashlib.sha256(seed.encode()).hexdigest(), 16)
    return f"{base}-{suffix(first, index, _STEP)}"
