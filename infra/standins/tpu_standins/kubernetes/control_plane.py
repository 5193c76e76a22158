"""A control plane that lives as long as a `with` block."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tpu_standins.kubeconfig import Endpoint, kubeconfig, write_private
from tpu_standins.kubernetes import credentials, flags, probes
from tpu_standins.kubernetes.credentials import Accounts, User
from tpu_standins.kubernetes.layout import Layout
from tpu_standins.kubernetes.programs import Programs
from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.ports import free_ports
from tpu_standins.processes import Asked, Listens, Processes, Program, Says

SELDOM_COLLECTED = {"GOGC": "200"}
"""Go collects garbage when the heap has grown threefold, not twofold: a control plane lives for minutes here, and the
API server starts with a sixth less of a processor's time, for 100 MiB more."""
ETCD, APISERVER, CONTROLLER_MANAGER, SCHEDULER = "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlane:
    """A running control plane: its version, its address, and the administrator's kubeconfig."""

    version: str
    layout: Layout
    accounts: Accounts

    @property
    def address(self) -> str:
        return self.layout.address

    @property
    def kubeconfig(self) -> Path:
        return self.layout.kubeconfig(self.accounts.admin.name)

    def write_kubeconfig(self, user: User, path: Path) -> Path:
        """Write a kubeconfig with which clients are this user, one of those that the control plane started with."""
        endpoint = Endpoint(address=self.address, authority=self.layout.authority.read_bytes())
        write_private(path, kubeconfig(endpoint, {"token": user.token}, cluster="local"))
        return path


def _as_it_is(_: ControlPlane) -> None:
    """Add nothing to what Kubernetes has."""


@contextmanager
def control_plane(
    programs: Programs,
    processes: Processes,
    folder: Path,
    users: tuple[User, ...] = (),
    extended: Callable[[ControlPlane], None] = _as_it_is,
) -> Iterator[ControlPlane]:
    """Start the four programs on free ports, with their files in `folder`, and end them when the block is left.

    They die with this process, too. A program that exits may be started again: it has the same ports and data.
    `extended` adds kinds before the controllers start, which learn of later ones after 30 s only. Raises ProgramFailed.
    """
    etcd_port, peer_port, secure_port = free_ports(3)
    layout = Layout(folder=folder, etcd_port=etcd_port, etcd_peer_port=peer_port, secure_port=secure_port)
    one = ControlPlane(version=programs.version, layout=layout, accounts=Accounts(others=users))
    credentials.write(layout, one.accounts)
    for user in one.accounts.all():
        one.write_kubeconfig(user, layout.kubeconfig(user.name))
    storage, server, *controllers = _programs(programs, one)
    try:
        processes.wait_until_ready(*processes.start(storage))
        processes.wait_until_ready(*processes.start(server))
        extended(one)
        processes.wait_until_ready(*processes.start(*controllers))
        yield one
    finally:
        for program in (*controllers, server, storage):
            _end(program, processes)


def _programs(programs: Programs, one: ControlPlane) -> tuple[Program, ...]:
    """Return the programs, in the order in which they start.

    Nothing of etcd is kept, and the API server waits for its clients' watches when it is asked to end, for a minute:
    both are killed.
    """
    layout, accounts = one.layout, one.accounts

    def program(name: str, path: Path, its_flags: tuple[str, ...], ready: Listens | Says | Asked) -> Program:
        return Program(
            name=name,
            command=(str(path), *its_flags),
            ready=ready,
            folder=layout.folder,
            environment=SELDOM_COLLECTED,
            patience_seconds=PATIENCE_SECONDS,
            ending=signal.SIGKILL if name in {ETCD, APISERVER} else signal.SIGTERM,
        )

    return (
        program(ETCD, programs.etcd, flags.etcd(layout), Listens(layout.etcd_port)),
        program(APISERVER, programs.apiserver, flags.apiserver(layout), Asked(probes.serves(layout, accounts.admin))),
        program(
            CONTROLLER_MANAGER,
            programs.controller_manager,
            flags.controller_manager(layout, accounts),
            Asked(probes.controls(layout, accounts.admin)),
        ),
        program(
            SCHEDULER, programs.scheduler, flags.scheduler(layout, accounts), Says(".*Starting Kubernetes Scheduler.*")
        ),
    )


def _end(program: Program, processes: Processes) -> None:
    """End the program, whoever started it last."""
    for child in processes.children():
        if child.program is program:
            processes.end(child)
