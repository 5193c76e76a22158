"""Where a cluster is."""

import re
from dataclasses import dataclass
from typing import Self

_ZONE = re.compile(r"-[a-z]$")


@dataclass(frozen=True, slots=True)
class Place:
    """A cluster by GKE's names."""

    project: str
    location: str
    name: str

    @classmethod
    def of(cls, path: str) -> Self:
        """Return the place of `projects/P/locations/L/clusters/C`."""
        _, project, _, location, _, name = path.split("/")
        return cls(project, location, name)

    @property
    def region(self) -> str:
        return _ZONE.sub("", self.location)

    @property
    def flags(self) -> str:
        """How gcloud is told of it, after its name."""
        return f"--location {self.location} --project {self.project}"
