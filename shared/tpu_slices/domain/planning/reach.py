"""Which hosts a pod may come to, by what the admission policy or the webhook had it require. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from tpu_slices.domain.model.facts import Reach, Requirement
from tpu_slices.domain.planning.keys import KEY_LABEL
from tpu_slices.domain.planning.pool_labels import OWNER_LABEL, PARENT_NAME_LABEL

_OWN = frozenset({KEY_LABEL, PARENT_NAME_LABEL})
"""Labels of hosts of which a pod requires one, by a value of its own, if a slice is made for it."""


def reach_of(affinity: Iterable[Iterable[Requirement]]) -> Reach:
    """Return the hosts that a pod may come to, by the terms of its required node affinity.

    | terms                                     | hosts                                  |
    |-------------------------------------------|----------------------------------------|
    | one with the hosts' key, or their Job     | its own (and static ones, by another)  |
    | all without a provisioner                 | static ones alone                      |
    | any other, or none: it was not judged     | any                                    |
    """
    terms = [list(term) for term in affinity]
    if any(each.key in _OWN for term in terms for each in term):
        return Reach.OWN
    static = (any((each.key, each.operator) == (OWNER_LABEL, "DoesNotExist") for each in term) for term in terms)
    return Reach.STATIC if terms and all(static) else Reach.ANY
