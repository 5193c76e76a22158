"""Which Kubernetes a stack uses.

| asked for           | there is                                         | used                              |
|---------------------|--------------------------------------------------|-----------------------------------|
| `--kubeconfig FILE` |                                                  | the cluster of its current context |
| `--embedded`        |                                                  | the embedded API server           |
|                     | a control plane's programs: KUBEBUILDER_ASSETS,  | these                             |
|                     | on the PATH, or built by `make kubernetes`; and  |                                   |
|                     | the controllers of a stack, built by it          |                                   |
|                     | one of them is missing                           | the embedded API server           |

$KUBECONFIG is never read: it may name a cluster that is in production.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from infra.local.live_target import Live, Wanted
from tpu_standins.controllers.catalogue import JOBSET, KUEUE, LWS, built, complete
from tpu_standins.kubernetes.programs import Programs, find
from tpu_standins.kubernetes.versions import pinned

CONTROLLERS = (JOBSET, LWS, KUEUE)
"""Of others, which a control plane of a stack's own has."""
_EMBEDDED = "Kubernetes: the embedded API server, no LeaderWorkerSets, no queues (`make kubernetes` builds a real one)"


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked for on the command line. `yes`: nobody is to be asked before a cluster is written to.

    `compute`: its slices are to be on a Compute Engine, as those of a self-managed cluster are.
    """

    kubeconfig: Path | None = None
    embedded: bool = False
    yes: bool = False
    compute: bool = False
    live: Wanted | None = None


@dataclass(frozen=True, slots=True)
class Embedded:
    """The embedded API server, and why others are not used."""

    remarks: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "; ".join((_EMBEDDED, *self.remarks))


@dataclass(frozen=True, slots=True)
class Built:
    """A control plane of these programs, and why others are not used."""

    programs: Programs
    remarks: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "; ".join((str(self.programs), *self.remarks))


@dataclass(frozen=True, slots=True, kw_only=True)
class Borrowed:
    """A cluster that is somebody's: the kubeconfig's current context alone, which nobody else changes meanwhile."""

    kubeconfig: Path
    context: str
    server: str
    live: Live | None = None
    """GKE itself creates its node pools; None: GKE is simulated."""

    def __str__(self) -> str:
        return f"Kubernetes: the cluster at {self.server}, context {self.context}"


ClusterChoice = Embedded | Built | Borrowed


def own(asked: Asked, environment: Mapping[str, str]) -> Embedded | Built:
    """Return which cluster of its own a stack starts."""
    if asked.embedded:
        return Embedded()
    found = find(environment, pinned())
    if found.programs is None:
        return Embedded(found.remarks)
    lacking = [str(each) for each in CONTROLLERS if not complete(built(each, environment))]
    if lacking:
        return Embedded((*found.remarks, f"not built: {', '.join(lacking)}"))
    return Built(found.programs, found.remarks)
