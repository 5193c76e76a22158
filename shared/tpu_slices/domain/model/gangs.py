"""Gangs: claims of one workload whose pods start together, once the slices of all of them stand."""

from __future__ import annotations

from enum import StrEnum

GANG = "tpu-provisioner.cloud.google.com/gang"
"""The annotation of a workload that asks for a gang, the label of pods that are of one, and the scheduling gate that
holds them: the admission policy or a template sets it, and the relay takes it off."""
ADMISSION_CHECKS = "tpu-provisioner.cloud.google.com/slices"
"""The controllerName of Kueue's AdmissionChecks that the relay answers once the slices of a workload stand."""


GANG_HOLD_FOR = f"{GANG}-hold-for"
"""The annotation of a workload that says for how long slices of its gangs are held, instead of the setting."""


class GangOf(StrEnum):
    """Which claims of a workload are a gang, in the words of its annotation."""

    ALL = "all"  # all, but for those of replicatedJobs that wait for others to complete
    REPLICATED_JOB = "replicatedjob"  # those of each replicatedJob by themselves
    NONE = "none"


class Gating(StrEnum):
    """What the API server makes of gangs, as objects show that are not stored: each has what those before it have."""

    NOTHING = "nothing"
    PODS = "pods"
    """Pods with the label get the gate."""
    ANNOTATED = "annotated"
    """The pods of workloads with the annotation get the label."""
    MULTISLICE = "multislice"
    """So do those of JobSets of several slices that do not say what they are."""


class Gangs(StrEnum):
    """Which workloads are gangs that do not say so themselves, in the words of the setting `gangs`."""

    NONE = "none"
    MULTISLICE = "multislice"  # those of several slices
