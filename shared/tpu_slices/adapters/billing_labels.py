"""The labels of a slice's machines for billing: those of Compute Engine, not of Kubernetes.

Rules: at most 63 characters of `[a-z0-9_-]`, keys beginning with a letter (Compute Engine's guide to labels).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from tpu_slices.domain.model.slices import WorkloadJob, claim_id

_LONGEST = 63
_DIGEST = 8  # characters of the digest that keeps changed names distinct


def billing_labels(job: WorkloadJob, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the labels that attribute the cost of the machines; labels of the settings cannot replace the slice's."""
    return {
        **settings,
        "tpu-slice-cluster": _value(job.cluster),
        "tpu-slice-namespace": _value(job.owner.namespace),
        "tpu-slice-owner": _value(job.owner.name),
        "tpu-slice": claim_id(job),
    }


def _value(name: str) -> str:
    """Return a Kubernetes name as a label value; a digest keeps names distinct that have to be changed."""
    plain = re.sub(r"[^a-z0-9_-]", "-", name.lower())
    if plain == name and len(plain) <= _LONGEST:
        return plain
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST]
    return f"{plain[: _LONGEST - _DIGEST - 1]}-{digest}"
