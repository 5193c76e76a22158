"""Compute Engine's quotas for TPU chips in a region, by accelerator and provisioning model, as Cloud Quotas shows them.

Of a region Compute Engine itself shows those of v4 and v5e alone. Reservations need none. The ids were read at second
hand (sources of docs/quotas.md). Those of accelerators that are not listed are not known.
"""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import NamedTuple

from infra.preflight.answers import Answer, Body, Denied, Found, Missing, Unreachable
from infra.preflight.findings import Finding, note, unread, warning
from infra.preflight.place import Place
from tpu_slices.domain.catalogue.accelerators import CATALOGUE
from tpu_slices.domain.model.clusters import Allowed, ClusterSettings
from tpu_slices.domain.model.slices import CapacityKind


class Quota(NamedTuple):
    id: str
    family: str = ""
    """The value of its dimension `tpu_family`, if it has that."""


_BY_FAMILY = "TPUS-PER-TPU-FAMILY-per-project-region"
QUOTAS: Mapping[tuple[str, CapacityKind], Quota] = MappingProxyType(
    {
        ("tpu-v5-lite-podslice", CapacityKind.ON_DEMAND): Quota("TPU-LITE-PODSLICE-V5-per-project-region"),
        ("tpu-v5-lite-podslice", CapacityKind.SPOT): Quota("PREEMPTIBLE-TPU-LITE-PODSLICE-V5-per-project-region"),
        ("tpu-v5p-slice", CapacityKind.ON_DEMAND): Quota("TPU-V5P-per-project-region"),
        ("tpu-v5p-slice", CapacityKind.SPOT): Quota("PREEMPTIBLE-TPU-V5P-per-project-region"),
        ("tpu-v6e-slice", CapacityKind.ON_DEMAND): Quota(_BY_FAMILY, "CT6E"),
        ("tpu-v6e-slice", CapacityKind.SPOT): Quota("PREEMPTIBLE-TPU-V6E-per-project-region"),
        ("tpu7x", CapacityKind.ON_DEMAND): Quota(_BY_FAMILY, "TPU7X"),
        ("tpu7x", CapacityKind.SPOT): Quota("PREEMPTIBLE-TPU7X-per-project-region"),
    }
)


def quotas_of(settings: ClusterSettings) -> dict[tuple[str, CapacityKind], Quota]:
    """Return the quotas of what the policy allows somebody in the cluster to have."""
    return {
        asked: quota
        for asked, quota in QUOTAS.items()
        if any(_allows(each, *asked, settings) for each in _tenants(settings))
    }


def path_of(quota_id: str, project: str, service: str = "compute") -> str:
    """Return where Cloud Quotas shows a quota of a project."""
    return f"v1/projects/{project}/locations/global/services/{service}.googleapis.com/quotaInfos/{quota_id}"


def quota_findings(settings: ClusterSettings, answers: Mapping[str, Answer]) -> Iterator[Finding]:
    """Yield for what there is no quota: of accelerators that the policy names, or of all that it allows.

    `answers` by the quotas' ids. What is not told is not judged; a quota that Cloud Quotas does not know is named.
    """
    place = Place.of(settings.path)
    unanswered = next((each for each in answers.values() if isinstance(each, Denied | Unreachable)), None)
    if unanswered is not None:
        yield from unread(f"which quotas for TPUs {place.region} has", unanswered)
    quotas = quotas_of(settings)
    yield from _unknown(quotas, answers, place)
    chips = {asked: limit_of(answers.get(quota.id), quota, place.region) for asked, quota in quotas.items()}
    lacking = [asked for asked, limit in chips.items() if limit == 0]
    if len(lacking) < len(chips):
        named = {label for each in _tenants(settings) for label in each.accelerators}
        lacking = [(label, kind) for label, kind in lacking if label in named]
    for label, kind in lacking:
        yield _lacking(label, kind, quotas[label, kind], place)


def _unknown(
    quotas: Mapping[tuple[str, CapacityKind], Quota], answers: Mapping[str, Answer], place: Place
) -> Iterator[Finding]:
    """Yield of which chips it is not known whether there is quota for them, as their quotas have other ids."""
    unknown = {asked: each.id for asked, each in quotas.items() if isinstance(answers.get(each.id), Missing)}
    if unknown:
        chips = ", ".join(f"{label} {_how(kind)}" for label, kind in unknown)
        ids = ", ".join(dict.fromkeys(unknown.values()))
        yield note(
            f"It is not known whether {place.region} has quota for chips of {chips}: Cloud Quotas does not know {ids}.",
            f"{list_of('compute', place.project)} --filter 'quotaId ~ TPU'",
        )


def list_of(service: str, project: str) -> str:
    """Return the command that lists a service's quotas as Cloud Quotas knows them."""
    return f"gcloud beta quotas info list --service {service}.googleapis.com --project {project}"


def _how(kind: CapacityKind) -> str:
    return "on demand" if kind is CapacityKind.ON_DEMAND else "as spot"


def _tenants(settings: ClusterSettings) -> tuple[Allowed, ...]:
    return settings.policy.everyone, *settings.policy.namespaces.values()


def _allows(allowed: Allowed, label: str, kind: CapacityKind, settings: ClusterSettings) -> bool:
    if settings.self_managed and not CATALOGUE[label].in_groups:
        return False
    capacity = {CapacityKind.ON_DEMAND} if settings.force_on_demand else {*allowed.capacity}
    return kind in capacity and any(fnmatchcase(label, pattern) for pattern in allowed.accelerators)


def limit_of(answer: Answer | None, quota: Quota, region: str) -> int | None:
    """Return the limit by the most specific of what is told for the region, -1 for none; None: nothing is told."""
    if not isinstance(answer, Found):
        return None
    wanted = {"region": region, "tpu_family": quota.family}
    told = [each for each in answer.body.get("dimensionsInfos", ()) if _is_about(each, wanted)]
    closest = max(told, key=lambda each: len(each.get("dimensions", ())), default=None)
    return None if closest is None else int(closest.get("details", {}).get("value", 0))


def _is_about(told: Body, wanted: Mapping[str, str]) -> bool:
    given: Mapping[str, str] = told.get("dimensions", {})
    return all(wanted.get(key, "").lower() == value.lower() for key, value in given.items())


def _lacking(label: str, kind: CapacityKind, quota: Quota, place: Place) -> Finding:
    family = f",tpu_family={quota.family}" if quota.family else ""
    return warning(
        f"{place.region} has no quota for chips of {label} {_how(kind)} ({quota.id}): ask for some.",
        f"gcloud beta quotas preferences create --service compute.googleapis.com --project {place.project} "
        f"--quota-id {quota.id} --dimensions region={place.region}{family} --preferred-value CHIPS",
    )
