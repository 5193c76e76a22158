"""What a stack consists of, and how its own programs are started."""

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from infra.local.addresses import Addresses
from infra.local.cluster_choice import Borrowed, ClusterChoice, Embedded
from infra.local.live_target import Live
from tpu_slices.domain.model.clusters import PodsOf
from tpu_slices.domain.model.gangs import Gangs
from tpu_slices_cli.settings_file import read_settings
from tpu_standins.compute.booting.host import cannot_be_used
from tpu_standins.processes import Program, Says

REPOSITORY = Path(__file__).parents[2]
CLUSTER_ID = "demo"
SELF_MANAGED_ID = "self-managed"
"""The cluster whose slices are on Compute Engine."""
STARTUP_SCRIPT = REPOSITORY / "shared" / "tpu_slices" / "adapters" / "startup.sh"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to run: `root` contains functions/ and relay/; logs and kubeconfigs are written below `state`.

    `queues`: whether a cluster of the stack's own has Kueue. `compute`: whether its slices are on a local Compute
    Engine, as those of a self-managed cluster are. `unbooted`: why its VMs do not run their startup script; empty: they
    do. `serve`: whose pods get a slice each, and `gangs`: which workloads are gangs that do not say so, as the
    cluster's settings say. `gke_arguments` and `compute_arguments` are
    additional arguments of `python -m tpu_standins.gke` and `tpu_standins.compute`, their pace for example.
    """

    root: Path = REPOSITORY
    state: Path = REPOSITORY / ".local"
    project: str = "demo-project"
    location: str = "us-central2"
    cluster_id: str = CLUSTER_ID
    sweep_seconds: float = 5
    cluster: ClusterChoice = field(default_factory=Embedded)
    queues: bool = False
    compute: bool = False
    unbooted: str = ""
    serve: tuple[PodsOf, ...] = ()
    gangs: Gangs = Gangs.NONE
    gke_arguments: tuple[str, ...] = ()
    compute_arguments: tuple[str, ...] = ()

    @property
    def told(self) -> str:
        """Return what the user should know of it."""
        if not self.compute:
            return str(self.cluster)
        hosts = "run the startup script of their metadata, in a mount namespace"
        simulated = f"join without their startup script, which cannot run here: {self.unbooted}"
        return f"{self.cluster}\nHosts that join by kubeadm {simulated if self.unbooted else hosts}."

    @property
    def live(self) -> Live | None:
        """The GKE cluster that is bought in; None: GKE is simulated."""
        return self.cluster.live if isinstance(self.cluster, Borrowed) else None

    def module(
        self,
        name: str,
        arguments: tuple[str, ...],
        said: str,
        addresses: Addresses,
        environment: Mapping[str, str] | None = None,
    ) -> Program:
        """Return the program `python -m ARGUMENTS`, which is ready when it has said so."""
        own = {"PYTHONPATH": str(self.root), "PYTHONUNBUFFERED": "1"}
        return Program(
            name=name,
            command=(sys.executable, "-m", *arguments),
            ready=Says(re.escape(said)),
            folder=self.root,
            environment={**addresses.environment(), **own, **(environment or {})},
        )


def settings_of(cluster_id: str, project: str = "demo-project") -> Path:
    """Return the file of the settings of a stack's cluster."""
    return REPOSITORY / "infra" / "clusters" / project / f"{cluster_id}.yaml"


def id_of(*, compute: bool) -> str:
    """Return the id of a stack's cluster: of one of GKE, or of a self-managed one on Compute Engine."""
    return SELF_MANAGED_ID if compute else CLUSTER_ID


def planned(state: Path, cluster: ClusterChoice, *, compute: bool, sweep_seconds: float, queues: bool = False) -> Plan:
    """Return the plan of a stack with a cluster of GKE, or with a self-managed one on Compute Engine."""
    settings = read_settings(settings_of(id_of(compute=compute))).settings
    return Plan(
        state=state,
        cluster=cluster,
        cluster_id=id_of(compute=compute),
        compute=compute,
        unbooted=cannot_be_used() if compute else "",
        sweep_seconds=sweep_seconds,
        serve=settings.serve,
        gangs=settings.gangs,
        queues=queues,
    )
