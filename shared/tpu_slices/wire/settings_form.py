"""The form of a cluster's settings: every field, what it takes, and what a person is told where it is wrong."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from tpu_slices.domain.model.clusters import Limits
from tpu_slices.domain.model.observations import FailureKind
from tpu_slices.domain.model.slices import CapacityKind, Network
from tpu_slices.domain.planning.host_labels import may_be_a_node_label
from tpu_slices.wire.documents import SCHEMA, Fields

_AMOUNT = re.compile(r"(\d+(?:\.\d+)?) ?([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def _duration(value: object) -> timedelta:
    match value:
        case bool():
            pass
        case int() | float():
            return timedelta(seconds=value)
        case str() if amount := _AMOUNT.fullmatch(value.strip()):
            return timedelta(**{_UNITS[amount[2]]: float(amount[1])})
    raise ValueError(f"{value!r} is no duration")


def _kind(value: object) -> FailureKind:
    kind = FailureKind(str(value).upper().replace("-", "_"))
    if kind not in Limits().backoff:
        raise ValueError(f"{value} is never tried again by itself")
    return kind


def _network(value: object) -> Network:
    network, colon, subnetwork = str(value).partition(":")
    if not (network and colon and subnetwork):
        raise ValueError(f"{value!r} is not NETWORK:SUBNETWORK")
    return Network(network, subnetwork)


def _node_label(value: str) -> str:
    if not may_be_a_node_label(value):
        raise ValueError(f"GKE takes no label {value} from others")
    return value


_Network = Annotated[Network, BeforeValidator(_network)]
_NodeLabel = Annotated[str, AfterValidator(_node_label)]
_Capacity = Annotated[CapacityKind, BeforeValidator(lambda value: CapacityKind(str(value).upper().replace("-", "_")))]
_Patterns = list[Annotated[str, Field(min_length=1)]]
_Zone = Annotated[str, Field(pattern=r"^[a-z]+-[a-z]+\d+-[a-z0-9]+$")]
_BillingKey = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,62}$")]
_BillingValue = Annotated[str, Field(pattern=r"^[a-z0-9_-]{0,63}$")]
_Duration = Annotated[timedelta, BeforeValidator(_duration), Field(gt=timedelta(0), le=timedelta(days=365))]
_Kind = Annotated[FailureKind, BeforeValidator(_kind)]


def _remedy(what_to_write: str, **bounds: Any) -> Any:
    """Declare a setting that has a default; the description is what a person is told where it is wrong."""
    return Field(default=None, description=what_to_write, **bounds)


def _chips() -> Any:
    return _remedy("a whole number of chips, or nothing for no limit", ge=1)


def _zone() -> Any:
    return _remedy("the name of a zone, as in us-central2-b")


def _time() -> Any:
    return _remedy("seconds, or text such as 90s, 15m, 2h or 30d")


class WrittenForm(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    def given(self) -> Fields:
        """Give what was written; empty is as good as not written."""
        return {name: value for name in self.model_fields_set if (value := getattr(self, name)) is not None}


class BackoffForm(WrittenForm):
    initial: _Duration | None = _time()
    maximum: _Duration | None = _time()


class LimitsForm(WrittenForm):
    demand_ttl: _Duration | None = _time()
    act_window: _Duration | None = _time()
    create_timeout: _Duration | None = _time()
    requeue_after: _Duration | None = _time()
    resync_after: _Duration | None = _time()
    delete_retry_after: _Duration | None = _time()
    blocked_retry_after: _Duration | None = _time()
    gone_ttl: _Duration | None = _time()
    backoff: dict[_Kind, BackoffForm] | None = _remedy(
        f"initial and maximum under any of {', '.join(kind.lower() for kind in Limits().backoff)}"
    )
    operations: int | None = _remedy("a whole number from 1 to 100", ge=1, le=100)


class PoolsForm(WrittenForm):
    service_account: str | None = _remedy("an address such as NAME@P.iam.gserviceaccount.com", pattern=r"^\S+@\S+$")
    boot_disk_gb: int | None = _remedy("a whole number of GB from 10 to 65536", ge=10, le=65536)
    boot_disk_type: str | None = _remedy("a disk type such as hyperdisk-balanced", pattern=r"^[a-z]+(-[a-z]+)+$")
    boot_disk_kms_key: str | None = _remedy(
        "projects/P/locations/L/keyRings/R/cryptoKeys/K",
        pattern=r"^projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+$",
    )
    confidential_storage: bool | None = _remedy("true, beside a boot_disk_kms_key, or false")
    secondary_boot_disk: str | None = _remedy(
        "projects/P/global/images/I", pattern=r"^projects/[^/]+/global/images/[^/]+$"
    )
    image_streaming: bool | None = _remedy("true or false")
    max_pods_per_node: int | None = _remedy("a whole number from 8 to 256", ge=8, le=256)
    auto_upgrade: bool | None = _remedy("true or false")
    secure_boot: bool | None = _remedy("true or false")
    integrity_monitoring: bool | None = _remedy("true or false")
    network_tags: list[Annotated[str, Field(pattern=r"^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$")]] | None = _remedy(
        "a list of names of a-z, 0-9 and -, up to 63 characters each"
    )
    additional_networks: list[_Network] | None = _remedy("a list of NETWORK:SUBNETWORK")
    workload_policy: str | None = _remedy(
        "a name that begins with a letter, in which {topology} may stand for the slice's",
        pattern=r"^[a-z][-a-z0-9]*(\{topology\})?[-a-z0-9]*$",
    )
    resource_labels: dict[_BillingKey, _BillingValue] | None = _remedy(
        "a map of at most 60, of a-z, 0-9, _ and -, up to 63 characters each, keys beginning with a letter",
        max_length=60,
    )

    @model_validator(mode="after")
    def _key_for_confidential_storage(self) -> Self:
        if self.confidential_storage and not self.boot_disk_kms_key:
            raise PydanticCustomError("without_key", "confidential_storage")
        return self


class AllowedForm(WrittenForm):
    capacity: list[_Capacity] | None = _remedy(
        f"a list of any of {', '.join(kind.lower() for kind in CapacityKind)}", min_length=1
    )
    reservations: _Patterns | None = _remedy("a list of names or projects/P/reservations/R; * matches anything")
    service_accounts: _Patterns | None = _remedy("a list of addresses; * matches anything")
    additional_networks: _Patterns | None = _remedy("a list of NETWORK:SUBNETWORK; * matches anything")
    copied_labels: _Patterns | None = _remedy("a list of keys of pod labels; * matches anything")
    chips_per_slice: int | None = _chips()
    chips_per_jobset: int | None = _chips()
    chips_per_namespace: int | None = _chips()


class PolicyForm(AllowedForm):
    chips_per_cluster: int | None = _chips()
    namespaces: dict[str, AllowedForm] | None = _remedy(
        f"a map of {', '.join(AllowedForm.model_fields)} for each namespace"
    )


class SettingsForm(WrittenForm):
    schema_: int | None = Field(default=None, alias="schema", ge=1, le=SCHEMA, description=f"1 to {SCHEMA}, or nothing")
    note: str | None = _remedy("text: it is for people")
    path: str = Field(
        description="the cluster's full name: projects/P/locations/L/clusters/C",
        pattern=r"^projects/[^/]+/locations/[^/]+/clusters/[^/]+$",
    )
    gke_id: str | None = _remedy("the id in GKE's own description of the cluster", min_length=1)
    zone: _Zone | None = _zone()
    reservation_zones: dict[str, _Zone] | None = _remedy("the zone of each reservation, as in hall-7: us-central2-b")
    pod_to_node_labels: list[_NodeLabel] | None = _remedy(
        "a list of keys of pod labels, none under google.com, kubernetes.io, k8s.io or gke.io"
    )
    force_on_demand: bool | None = _remedy("true or false")
    hosts_per_slice: int | None = _remedy("a whole number from 1 to 15000", ge=1, le=15000)
    pools: PoolsForm | None = _remedy(f"a map of {', '.join(PoolsForm.model_fields)}")
    policy: PolicyForm | None = _remedy(f"a map of {', '.join(PolicyForm.model_fields)}")
    limits: LimitsForm | None = _remedy(f"a map of {', '.join(LimitsForm.model_fields)}")


_PLACES: Mapping[str, tuple[str, str]] = {
    field.alias or name: (f"{prefix}{field.alias or name}", field.description or "")
    for prefix, model in (
        ("policy.namespaces.NAME.", AllowedForm),
        ("", SettingsForm),
        ("pools.", PoolsForm),
        ("policy.", PolicyForm),
        ("limits.", LimitsForm),
        ("limits.backoff.KIND.", BackoffForm),
    )
    for name, field in model.model_fields.items()
}
"""Where each setting belongs, and what to write there."""


def explained(error: ErrorDetails) -> str:
    """Say where the fault is and what to write there, as in `limits.demand_ttl cannot be 'soon': write seconds, …`."""
    where = [str(part) for part in error["loc"] if part != "[key]"]
    if error["type"] == "without_key":
        return f"{'.'.join(where)}.confidential_storage needs a key: write boot_disk_kms_key beside it"
    if error["type"] == "extra_forbidden":
        near = difflib.get_close_matches(where[-1], _PLACES, n=1)
        return f"{'.'.join(where)} is no setting: " + (f"is {_PLACES[near[0]][0]} meant?" if near else "remove it")
    wrong = "is missing" if error["type"] == "missing" else f"cannot be {error['input']!r}"
    remedies = [_PLACES[part][1] for part in where if part in _PLACES]
    return f"{'.'.join(where) or 'the document'} {wrong}: write {remedies[-1] if remedies else 'a map of settings'}"
