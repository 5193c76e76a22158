"""JobSet's exclusive placement by node selector: the nodes of a Job's slice are labeled for that Job alone.

GKE refuses that placement's label on a node pool, so the nodes are labeled once they exist; JobSet leaves that to
others (kubernetes-sigs/jobset pkg/controllers/jobset_controller.go, constructJob). The taint is part of the node pool,
so that no other pod is scheduled there first; here it is only restored where it is missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tpu_slices.domain.planning.host_labels import JOBSET_TAINT, NAMESPACED_JOB
from tpu_slices.domain.planning.pool_labels import EXCLUSIVE_NODES_LABEL, PARENT_NAME_LABEL, PARENT_NAMESPACE_LABEL

TAINT: Mapping[str, str] = {"key": JOBSET_TAINT, "value": "true", "effect": "NoSchedule"}
"""JobSet's pods tolerate it, by key and effect."""
_LONGEST = 63
"""Characters of a label's value. JobSet itself cannot select by a longer namespace and name."""


def missing_labels(node: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the JSON merge patch that labels a v1 Node for its Job; None if it is labeled, or need not or cannot be.

    The patch has the resourceVersion that it is based on: it replaces all taints, and must not undo another's change.
    """
    metadata = node["metadata"]
    labels: Mapping[str, str] = metadata.get("labels") or {}
    if labels.get(EXCLUSIVE_NODES_LABEL) != "true":
        return None
    job = f"{labels.get(PARENT_NAMESPACE_LABEL)}_{labels.get(PARENT_NAME_LABEL)}"
    if PARENT_NAMESPACE_LABEL not in labels or PARENT_NAME_LABEL not in labels or len(job) > _LONGEST:
        return None
    taints: Sequence[Mapping[str, str]] = node["spec"].get("taints") or ()
    tainted = any(TAINT.items() <= taint.items() for taint in taints)
    if tainted and labels.get(NAMESPACED_JOB) == job:
        return None
    others = [taint for taint in taints if (taint["key"], taint["effect"]) != (TAINT["key"], TAINT["effect"])]
    return {
        "metadata": {"resourceVersion": metadata["resourceVersion"], "labels": {NAMESPACED_JOB: job}},
        "spec": {"taints": [*others, dict(TAINT)]},
    }
