"""Where a cluster is."""

import re
from dataclasses import dataclass
from typing import Self

_ZONE = re.compile(r"-[a-z]$")


@dataclass(frozen=True, slots=True)
class Place:
    """A cluster by GKE's names; of a self-managed one, the project and the location of its slices."""

    project: str
    location: str
    name: str
    """GKE's; "" of a self-managed cluster."""

    @classmethod
    def of(cls, path: str) -> Self:
        """Return the place of `projects/P/locations/L/clusters/C`, or of `projects/P/locations/L`."""
        _, project, _, location, *of_gke = path.split("/")
        return cls(project, location, of_gke[-1] if of_gke else "")

    @property
    def region(self) -> str:
        return _ZONE.sub("", self.location)

    @property
    def flags(self) -> str:
        """How gcloud is told of it, after its name."""
        return f"--location {self.location} --project {self.project}"
