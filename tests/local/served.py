"""The embedded API server in its own process behind a proxy that injects faults, and kubectl to access it."""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kubernetes.config

from tests.cluster import asking
from tests.cluster.servers import EMBEDDED, ROOT, Cluster, module
from tpu_standins.clients.api import Api
from tpu_standins.jobset.installation import install_crd
from tpu_standins.ports import free_ports
from tpu_standins.prerequisites import find, require
from tpu_standins.processes import Child, Processes
from tpu_standins.testing.proxied import Proxied, before

__all__ = ["ROOT", "Served", "connected", "serving"]

config: Any = kubernetes.config  # untyped, although the package claims to be typed


@dataclass(frozen=True, slots=True, kw_only=True)
class Served(Cluster):
    """A server; `kubeconfig` is that of the proxy before it, `server` its process, which listens on `port`.

    `direct` is the kubeconfig that the server itself wrote.
    """

    proxy: Proxied
    server: Child
    port: int
    direct: Path

    def press(self, fault: str, **more: Any) -> dict[str, int]:
        """Inject a fault."""
        return self.proxy.press(fault, **more)


@contextmanager
def serving(folder: Path, *arguments: str, controllers: bool = False, port: int = 0) -> Iterator[Served]:
    """Start the server with JobSet's kind; with `controllers`, also its own, JobSet's and the kubelets."""
    kubeconfig, setpriv = folder / "kubeconfig", require(find(os.environ)).setpriv
    port = port or free_ports(1)[0]
    own = (*arguments, *(() if controllers else ("--no-controllers",)))
    with Processes(setpriv=setpriv, logs=folder / "logs", environment=os.environ) as processes:
        said = f"listening on https://127.0.0.1:{port}"
        (server,) = processes.start(module(EMBEDDED, said, "--port", str(port), "--kubeconfig", str(kubeconfig), *own))
        processes.wait_until_ready(server)
        if controllers:
            parts = (module(part, "ready", "--kubeconfig", str(kubeconfig)) for part in ("jobset", "kubelet"))
            processes.wait_until_ready(*processes.start(*parts))
        else:
            with closing(Api.of(kubeconfig)) as api:
                install_crd(api)
        with before(kubeconfig, folder) as proxy, closing(asking.Api(kubeconfig)) as asked:
            yield Served(
                name=EMBEDDED,
                kubeconfig=proxy.kubeconfig,
                processes=processes,
                api=asked,
                proxy=proxy,
                server=server,
                port=port,
                direct=kubeconfig,
            )


@contextmanager
def connected(served: Served) -> Iterator[Any]:
    """Yield an ApiClient of the official client."""
    with config.new_client_from_config(str(served.kubeconfig)) as connection:
        yield connection
        connection.rest_client.pool_manager.clear()
