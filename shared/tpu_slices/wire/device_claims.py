"""Recognises pods that claim TPU chips as devices, by Kubernetes' dynamic resource allocation (DRA). Pure.

Such pods request no `google.com/tpu`: their `resourceClaims` name a ResourceClaim or a ResourceClaimTemplate, which
asks for devices of a class. That of TPU is `tpu.google.com`; a pod claims all chips of its host (Google's DRA driver
for TPU; "Prepare GKE infrastructure for DRA workloads" in GKE's documentation). No slice is made for them: GKE's own
provisioning makes no nodes for claims, either.

| what a pod claims                             | is taken to be chips                        |
|-----------------------------------------------|---------------------------------------------|
| anything, and it requests `google.com/tpu`    | no: a network device, say                   |
| is known, and of the class of TPU             | yes                                         |
| is known, and of other classes                | no                                          |
| is not known                                  | if the pod selects, or tolerates, TPU hosts |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from tpu_slices.domain.planning.host_labels import ACCELERATOR
from tpu_slices.wire.tpu_objects import mappings, requests_chips
from tpu_slices.wire.workloads import CHIPS, Json

DEVICE_CLASS = "tpu.google.com"
_GROUP = "resource.k8s.io"
_NAMED_BY = {"resourceClaimName": "ResourceClaim", "resourceClaimTemplateName": "ResourceClaimTemplate"}
Find = Callable[[str, str], Json | None]
"""Returns the object of a kind, with its API group, and a name; None: it is not known."""


def nothing_known(_: str, __: str) -> None:
    """Return that no ResourceClaim and no template of one is known."""


def claimed_chips(obj: Json, find: Find = nothing_known) -> tuple[str, ...]:
    """Return the names, in their pods, of the claims by which pods of an object claim chips."""
    pods = (spec for spec in mappings(obj) if isinstance(spec.get("containers"), list))
    specs = (spec for spec in pods if not requests_chips(spec))
    claims = ((spec, claim) for spec in specs for claim in _listed(spec, "resourceClaims"))
    return tuple(dict.fromkeys(str(claim.get("name")) for spec, claim in claims if _is_of_tpu(spec, claim, find)))


def why_not_by_claims(names: tuple[str, ...]) -> str:
    """Return why pods that claim chips get no slice, as a clause with the remedy."""
    return (
        f"its pods claim chips as devices (resourceClaims: {', '.join(names)}), by dynamic resource allocation, for "
        f"which no slice is made: request {CHIPS} in resources.limits instead"
    )


def _is_of_tpu(spec: Json, claim: Json, find: Find) -> bool:
    named = ((kind, claim.get(field)) for field, kind in _NAMED_BY.items())
    known = next((find(f"{_GROUP}/{kind}", str(name)) for kind, name in named if name), None)
    if known is not None:
        return any(each.get("deviceClassName") == DEVICE_CLASS for each in mappings(known))
    selects = ACCELERATOR in (spec.get("nodeSelector") or {})
    return selects or any(each.get("key") == CHIPS for each in _listed(spec, "tolerations"))


def _listed(spec: Json, field: str) -> Iterator[Json]:
    found = spec.get(field)
    return (each for each in found if isinstance(each, Mapping)) if isinstance(found, list) else iter(())
