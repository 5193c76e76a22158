"""The flags of the four programs."""

from tpu_standins.kubernetes.credentials import Accounts
from tpu_standins.kubernetes.layout import HOST, Layout

_PATIENT_ETCD = ("--heartbeat-interval=1000", "--election-timeout=10000")
"""In milliseconds. A request is given up after five seconds and twice the timeout, which a busy machine may take."""
_PATIENT_CONTROLLERS = ("--node-monitor-grace-period=10m", "--node-startup-grace-period=10m")
"""Kubelets here renew their Leases as soon as they get a processor; Nodes that tests make have none."""


def etcd(layout: Layout) -> tuple[str, ...]:
    """Return flags of a single member that keeps nothing beyond its life: it does not wait for the disk."""
    return (
        "--name=local",
        f"--data-dir={layout.folder / 'etcd'}",
        f"--listen-client-urls={layout.etcd}",
        f"--advertise-client-urls={layout.etcd}",
        f"--listen-peer-urls={layout.etcd_peer}",
        f"--initial-advertise-peer-urls={layout.etcd_peer}",
        f"--initial-cluster=local={layout.etcd_peer}",
        "--unsafe-no-fsync",
        *_PATIENT_ETCD,
    )


def apiserver(layout: Layout) -> tuple[str, ...]:
    """Return flags of an API server with RBAC, and what GKE, or one that kubeadm made, has beyond Kubernetes' defaults.

    That is an admission plugin of GKE's, kubeadm's bootstrap tokens, and privileged containers, which both have.
    """
    return (
        f"--etcd-servers={layout.etcd}",
        f"--bind-address={HOST}",
        f"--advertise-address={HOST}",
        f"--secure-port={layout.secure_port}",
        f"--tls-cert-file={layout.certificate}",
        f"--tls-private-key-file={layout.key}",
        "--authorization-mode=RBAC",
        f"--token-auth-file={layout.tokens}",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={layout.accounts_public_key}",
        f"--service-account-signing-key-file={layout.accounts_key}",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--endpoint-reconciler-type=none",
        "--enable-admission-plugins=ExtendedResourceToleration",
        "--allow-privileged=true",
        "--enable-bootstrap-token-auth=true",
        "--profiling=false",
    )


def controller_manager(layout: Layout, accounts: Accounts) -> tuple[str, ...]:
    """Return flags of all default controllers, each with its own ServiceAccount's rights."""
    return (
        f"--kubeconfig={layout.kubeconfig(accounts.controller_manager.name)}",
        f"--root-ca-file={layout.authority}",
        f"--service-account-private-key-file={layout.accounts_key}",
        "--use-service-account-credentials",
        *_PATIENT_CONTROLLERS,
        *_alone(),
    )


def scheduler(layout: Layout, accounts: Accounts) -> tuple[str, ...]:
    return (f"--kubeconfig={layout.kubeconfig(accounts.scheduler.name)}", *_alone())


def _alone() -> tuple[str, ...]:
    """Return flags of a program that has no second one beside it, whom nobody asks, and who need not spare the server.

    With the default of 20 requests a second it takes seconds until every controller has its ServiceAccount.
    """
    return (
        "--leader-elect=false",
        "--secure-port=0",
        "--profiling=false",
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
    )
