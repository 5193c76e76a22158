"""What TPU operator (gke-labs/tpu-operator) makes for a TPUNodeGroup on Compute Engine, by its names. Pure.

Its policy, template and instance group have neither labels nor a description. Their names, though, end in a digest of
the group's UID, in the versions that were read last; those of earlier versions do not, and prove nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

from tpu_slices.domain.model.slices import Owner

FINALIZERS = tuple(f"tpu.google.com/cleanup-{step}" for step in ("mig", "template", "policy", "nodes", "device-plugin"))
"""Of a TPUNodeGroup that TPU operator holds."""
_DIGEST = 8  # hexadecimal digits


class PartNames(NamedTuple):
    """The names of what a slice consists of on Compute Engine."""

    policy: str
    template: str
    group: str


def operator_names(owner: Owner) -> PartNames:
    """Return the names that TPU operator gives what it makes for a TPUNodeGroup."""
    digest = hashlib.sha256(owner.uid.encode()).hexdigest()[:_DIGEST]
    policy, template, group = (f"{owner.name}-{part}-{digest}" for part in ("policy", "template", "mig"))
    return PartNames(policy, template, group)


def holds(finalizers: Iterable[str]) -> bool:
    """Return whether TPU operator holds a TPUNodeGroup with these finalizers."""
    return any(each in FINALIZERS for each in finalizers)
