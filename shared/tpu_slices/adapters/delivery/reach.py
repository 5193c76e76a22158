"""Connects to a target at an address that was looked at: not to what the name means a moment later."""

from __future__ import annotations

import ipaddress
import socket

from tpu_slices.ports.errors import Permanent, Temporary

TIMEOUT = 10.0
"""Seconds to connect, and to wait for each part of an answer."""
_METADATA = frozenset(map(ipaddress.ip_address, ("169.254.169.254", "fd20:ce::254")))
"""Google Cloud's metadata servers (https://cloud.google.com/compute/docs/metadata/querying-metadata)."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def may_reach(address: Address, *, private: bool) -> bool:
    """Return whether notifications may be sent to an address; `private`: the target may be in a private network.

    | address                                 | may be reached    |
    |-----------------------------------------|-------------------|
    | of a metadata server, or link-local     | no                |
    | of many, of none, reserved              | no                |
    | public                                  | yes               |
    | private, or of the machine itself       | if it is said so  |
    """
    real = getattr(address, "ipv4_mapped", None) or address
    if real in _METADATA or real.is_link_local or real.is_multicast or real.is_unspecified:
        return False
    if real.is_reserved and not real.is_loopback:
        return False
    return bool(real.is_global or private)


def connected(host: str, port: int, *, private: bool) -> socket.socket:
    """Return a connection to a host. Permanent: no address of it may be reached. Temporary: it does not answer."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise Temporary(f"its name is not resolved: {type(error).__name__}") from None
    addresses = dict.fromkeys(str(each[4][0]).partition("%")[0] for each in found)
    allowed = [each for each in addresses if may_reach(ipaddress.ip_address(each), private=private)]
    if not allowed:
        raise Permanent("its address is private: a target in a private network is to have `private: true`")
    for last, address in enumerate(allowed, start=1):
        try:
            return socket.create_connection((address, port), timeout=TIMEOUT)
        except OSError as error:
            if last == len(allowed):
                raise Temporary(f"it cannot be reached: {type(error).__name__}") from None
    raise AssertionError("there is an address")
