"""Whether an API server makes of gangs what the settings of its cluster say. Pure.

| `gangs`    | the API server | what it makes of gangs                              |
|------------|----------------|-----------------------------------------------------|
| multislice | MULTISLICE     | is as it is set                                     |
| multislice | any other      | is not                                              |
| none       | MULTISLICE     | is not                                              |
| none       | ANNOTATED      | is as it is set                                     |
| none       | any other      | is as it is set: only gates of their templates hold |
"""

from __future__ import annotations

from tpu_slices.domain.model.gangs import GANG, Gangs, Gating

_BY = "the admission policies and the webhook"
GATES = f"spec.schedulingGates: [{{name: {GANG}}}]"
"""What holds the pods of a template without the help of an operator."""


def as_set(gangs: Gangs, gating: Gating) -> str:
    """Return what the API server makes of gangs; empty: it is not what is set."""
    match gangs, gating:
        case Gangs.MULTISLICE, Gating.MULTISLICE:
            return "JobSets of several slices are gangs, and so is what is annotated: their pods are held."
        case Gangs.NONE, Gating.ANNOTATED:
            return "Workloads that are annotated as gangs are held until all of their slices stand."
        case Gangs.NONE, Gating.NOTHING | Gating.PODS:
            return f"Pods of gangs are held only where their templates have {GATES}: {_BY} do not give it."
        case _:
            return ""


def not_as_set(gangs: Gangs, gating: Gating) -> str:
    """Return why what an API server makes of gangs is not what is set, if `as_set` says nothing."""
    if gangs is Gangs.NONE:
        return "The setting `gangs` is none, and JobSets of several slices become gangs all the same"
    held = {
        Gating.ANNOTATED: "unless they are annotated",
        Gating.PODS: f"unless their templates have the label {GANG}",
    }.get(gating, f"unless their templates have {GATES}")
    return f"The setting `gangs` is multislice, and the pods of such JobSets are not held {held}: they start on a part"
