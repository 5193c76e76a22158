"""Where a control plane is: its ports on loopback and the files of its folder."""

from dataclasses import dataclass
from pathlib import Path

HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """One control plane's folder, which it alone uses, and its ports."""

    folder: Path
    etcd_port: int
    etcd_peer_port: int
    secure_port: int

    @property
    def etcd(self) -> str:
        return f"http://{HOST}:{self.etcd_port}"

    @property
    def etcd_peer(self) -> str:
        return f"http://{HOST}:{self.etcd_peer_port}"

    @property
    def address(self) -> str:
        return f"https://{HOST}:{self.secure_port}"

    @property
    def authority(self) -> Path:
        return self.folder / "ca.crt"

    @property
    def certificate(self) -> Path:
        return self.folder / "apiserver.crt"

    @property
    def key(self) -> Path:
        return self.folder / "apiserver.key"

    @property
    def accounts_key(self) -> Path:
        """Return the path of the key that signs the tokens of ServiceAccounts."""
        return self.folder / "service-accounts.key"

    @property
    def accounts_public_key(self) -> Path:
        return self.folder / "service-accounts.pub"

    @property
    def tokens(self) -> Path:
        return self.folder / "tokens.csv"

    def kubeconfig(self, user: str) -> Path:
        """Return the path of a user's kubeconfig; `system:` and the like stay out of the file's name."""
        return self.folder / f"{user.rpartition(':')[2]}.kubeconfig"
