"""What `kubeadm join` makes of a JoinConfiguration (v1beta3, v1beta4), and the kubelet that it starts. Pure.

It refuses in kubeadm's order and words: kubernetes-sigs/kind#2798 for tokens, kubernetes/kubeadm#2471 for authorities,
cmd/kubelet/app/options of Kubernetes for labels. Two things it takes for granted that kubeadm does: who has the token
trusts what cluster-info says of the authority, and the kubelet gets its certificate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import yaml

from tpu_standins.compute.vms import Registration, labels_of

_IDENTITY = "error execution phase preflight: couldn't validate the identity of the API Server: "
_OWN_LABELS = frozenset(
    {
        *("kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch"),
        *("beta.kubernetes.io/os", "beta.kubernetes.io/arch", "beta.kubernetes.io/instance-type"),
        *("node.kubernetes.io/instance-type", "topology.kubernetes.io/zone", "topology.kubernetes.io/region"),
        *("failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"),
    }
)
_OWN_DOMAINS = ("kubelet.kubernetes.io", "node.kubernetes.io")
_RESERVED_DOMAINS = ("kubernetes.io", "k8s.io")


class CannotJoinError(Exception):
    """A machine does not join; says why, as kubeadm does."""


class ApiServer(Protocol):
    def takes(self, token: str) -> bool:
        """Return whether a bootstrap token is good now. Raise CannotJoinError if there is no answer."""

    def ca_hashes(self) -> tuple[str, ...]:
        """Return `sha256:…` of the public keys of its authorities."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    token: str
    ca_hashes: frozenset[str]
    registration: Registration


def parse(text: str) -> Configuration:
    """Parse a JoinConfiguration. Raise CannotJoinError."""
    try:
        document = yaml.safe_load(text)
        bootstrap, node = document["discovery"]["bootstrapToken"], document["nodeRegistration"]
        flags = _flags(node["kubeletExtraArgs"])
        registration = Registration(
            name=node["name"],
            provider_id=flags["provider-id"],
            labels=labels_of(flags["node-labels"]),
            taints=tuple(node["taints"]),
        )
        return Configuration(
            token=bootstrap["token"], ca_hashes=frozenset(bootstrap["caCertHashes"]), registration=registration
        )
    except (yaml.YAMLError, KeyError, TypeError) as error:
        raise CannotJoinError(f"error unmarshaling configuration: {type(error).__name__}: {error}") from error


def registered(configuration: Configuration, server: ApiServer) -> Registration:
    """Return what becomes a Node. Raise CannotJoinError."""
    if not server.takes(configuration.token):
        name = configuration.token.partition(".")[0]
        raise CannotJoinError(
            f'{_IDENTITY}could not find a JWS signature in the cluster-info ConfigMap for token ID "{name}"'
        )
    hashes = server.ca_hashes()
    if configuration.ca_hashes.isdisjoint(hashes):
        keys = " ".join(f'"{each}"' for each in hashes)
        raise CannotJoinError(
            f"{_IDENTITY}cluster CA found in cluster-info ConfigMap is invalid: none of the public keys {keys} are "
            "pinned"
        )
    if reserved := sorted(_reserved(configuration.registration.labels)):
        raise CannotJoinError(
            "failed to validate kubelet flags: unknown 'kubernetes.io' or 'k8s.io' labels specified with "
            f"--node-labels: [{' '.join(reserved)}]"
        )
    return configuration.registration


def _flags(written: Any) -> Mapping[str, str]:
    """Return kubeletExtraArgs by name: a list of names and values, in v1beta3 an object."""
    return written if isinstance(written, dict) else {each["name"]: each["value"] for each in written}


def _reserved(labels: Mapping[str, str]) -> Iterator[str]:
    """Yield the labels that a kubelet does not start with."""
    for key in labels:
        domain = key.rpartition("/")[0]
        if _within(domain, _RESERVED_DOMAINS) and not _within(domain, _OWN_DOMAINS) and key not in _OWN_LABELS:
            yield key


def _within(domain: str, domains: tuple[str, ...]) -> bool:
    return domain in domains or domain.endswith(tuple(f".{each}" for each in domains))
