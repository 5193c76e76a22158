"""The addresses of one local stack, and the environment variables that pass them to its programs."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tpu_slices.domain.model.clusters import PodsOf
from tpu_slices.domain.model.gangs import Gangs


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """Host:port of `pubsub`, `firestore` and `gke`; URLs of `buttons`, `proxy_buttons` and each of `functions`.

    A self-managed cluster has `compute`, host:port too, and no `gke`; the `buttons` are those of either.
    Kubernetes is where the kubeconfigs in `folder` say. `proxy_port`: of the proxy before its API server.
    """

    project: str
    location: str
    cluster_id: str
    pubsub: str
    firestore: str
    gke: str
    buttons: str
    proxy_port: int
    proxy_buttons: str
    functions: Mapping[str, str]
    folder: Path
    compute: str = ""
    serve: tuple[PodsOf, ...] = ()
    """Whose pods get a slice each: what the policy, the webhook and the relay are told."""
    gangs: Gangs = Gangs.NONE
    """Which workloads are gangs that do not say so: what the policy and the webhook are told."""
    live_path: str | None = None
    """The path of a cluster of a GKE that is not the stack's own; `gke` is then empty, unless it is an emulator too."""

    @property
    def cluster_path(self) -> str:
        if self.live_path is not None:
            return self.live_path
        if self.compute:
            return f"projects/{self.project}/locations/{self.location}"
        return f"projects/{self.project}/locations/{self.location}/clusters/{self.cluster_id}"

    @property
    def served(self) -> dict[str, str]:
        """Return the environment variable by which webhook and relay know whose pods get a slice each."""
        return {"SERVE": ",".join(self.serve)}

    @property
    def hosts_in(self) -> str:
        """Return where the hosts of a self-managed cluster are, as the relay is told; empty for one of GKE."""
        return self.cluster_path if self.compute else ""

    @property
    def kubeconfig(self) -> Path:
        """Return the path of the kubeconfig that people and the stack's programs use."""
        return self.folder / "kubeconfig"

    @property
    def proxy_kubeconfig(self) -> Path:
        """Return the path of the same user's kubeconfig, but by the proxy that injects faults."""
        return self.folder / "proxy.kubeconfig"

    @property
    def relay_kubeconfig(self) -> Path:
        """Return the path of the relay's own: by the proxy, as its ServiceAccount."""
        return self.folder / "relay.kubeconfig"

    @property
    def relay_token(self) -> Path:
        return self.folder / "relay.token"

    @property
    def webhook_kubeconfig(self) -> Path:
        """Return the path of the webhook's own, as its ServiceAccount."""
        return self.folder / "webhook.kubeconfig"

    @property
    def webhook_token(self) -> Path:
        return self.folder / "webhook.token"

    @property
    def targets(self) -> Path:
        """Return the path of the file with the targets of notifications."""
        return self.folder / "targets.json"

    @property
    def credentials(self) -> Path:
        """Return the path of the credentials for a GKE that is not simulated."""
        return self.folder / "credentials.json"

    def topic_path(self, topic: str) -> str:
        return f"projects/{self.project}/topics/{topic}"

    def endpoint(self, function: str, topic: str) -> str:
        """Return the push endpoint for a topic; functions-framework reads the topic's name from the path."""
        return f"{self.functions[function]}/{self.topic_path(topic)}"

    def environment(self) -> dict[str, str]:
        """Return the environment variables that Google's clients and the provisioner read."""
        vendor = {"GKE_EMULATOR_HOST": self.gke, "COMPUTE_EMULATOR_HOST": self.compute}
        vendor = {name: address for name, address in vendor.items() if address}
        if self.live_path is not None:
            vendor["GOOGLE_APPLICATION_CREDENTIALS"] = str(self.credentials)
        return {
            "CLUSTER": self.cluster_id,
            "FIRESTORE_EMULATOR_HOST": self.firestore,
            **vendor,
            "GOOGLE_CLOUD_PROJECT": self.project,
            "KUBECONFIG": str(self.kubeconfig),
            "PUBSUB_EMULATOR_HOST": self.pubsub,
        }


def port_of(address: str) -> int:
    """Return the port at the end of host:port or of a URL without a path."""
    return int(address.rpartition(":")[2])
