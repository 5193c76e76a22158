"""The schema of a cluster's settings: every field, its valid values, and the error for an invalid one."""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationInfo,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from tpu_slices.domain.catalogue.accelerators import CATALOGUE
from tpu_slices.domain.catalogue.rows import Cells
from tpu_slices.domain.model.capacity import Advice
from tpu_slices.domain.model.clusters import Join, Limits, PodsOf, Upgrades
from tpu_slices.domain.model.gangs import Gangs
from tpu_slices.domain.model.notifications import NOBODY, Occasion
from tpu_slices.domain.model.observations import Cause, FailureKind
from tpu_slices.domain.model.slices import CapacityKind, Network
from tpu_slices.domain.model.texts import as_duration, duration
from tpu_slices.domain.planning.flex_start import LONGEST, SHORTEST
from tpu_slices.domain.planning.host_labels import may_be_a_node_label
from tpu_slices.wire.documents import SCHEMA
from tpu_slices.wire.forms.capacity import AdviceOf, NamespaceForm, WarmForm
from tpu_slices.wire.forms.ladders import LadderForm, Name, PlaceForm, RungForm
from tpu_slices.wire.forms.spares import SpareForm
from tpu_slices.wire.forms.written import (
    Duration,
    WrittenForm,
    chips_setting,
    dollars_setting,
    fields_of,
    setting,
    time_setting,
    zone_setting,
)


def _kind(value: object) -> FailureKind:
    kind = FailureKind(str(value).upper().replace("-", "_"))
    if kind not in Limits().backoff:
        raise ValueError(f"{value} is never retried")
    return kind


def _network(value: object) -> Network:
    network, colon, subnetwork = str(value).partition(":")
    if not (network and colon and subnetwork):
        raise ValueError(f"{value!r} is not NETWORK:SUBNETWORK")
    return Network(network, subnetwork)


def _node_label(value: str) -> str:
    if not may_be_a_node_label(value):
        raise ValueError(f"{value} is not accepted as a node label")
    return value


def _accelerator(value: str, info: ValidationInfo) -> str:
    if not fnmatch.filter((info.context or {}).get("accelerators", CATALOGUE), value):
        raise ValueError(f"{value} is no accelerator")
    return value


def _row(value: object) -> Cells:
    """Return a row of the catalogue as its files have it, texts by column: yes, no, and lists with blanks between."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{value!r} is not a map")  # noqa: TRY004 - pydantic reports a ValueError with its field
    return tuple((str(field), _cell(each)) for field, each in value.items() if each is not None)


def _cell(value: object) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case list():
            return " ".join(map(str, value))
        case datetime():
            return value.date().isoformat()
        case _:
            return str(value)


def _target(name: str) -> str:
    if name == NOBODY:
        raise ValueError(f"{NOBODY} means that nobody is notified")
    return name


_Row = Annotated[Cells, BeforeValidator(_row)]
_Network = Annotated[Network, BeforeValidator(_network)]
_NodeLabel = Annotated[str, AfterValidator(_node_label)]
_Capacity = Annotated[CapacityKind, BeforeValidator(lambda value: CapacityKind(str(value).upper().replace("-", "_")))]
_Accelerator = Annotated[str, AfterValidator(_accelerator)]
_Patterns = list[Annotated[str, Field(min_length=1)]]
_Zone = Annotated[str, Field(pattern=r"^[a-z]+-[a-z]+\d+-[a-z0-9]+$")]
_BillingKey = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,62}$")]
_BillingValue = Annotated[str, Field(pattern=r"^[a-z0-9_-]{0,63}$")]
_RunDuration = Annotated[timedelta, BeforeValidator(as_duration), Field(ge=SHORTEST, le=LONGEST)]
_Upgrades = Annotated[Upgrades, BeforeValidator(lambda value: Upgrades(str(value).upper()))]
_Join = Annotated[Join, BeforeValidator(lambda value: Join(str(value).upper()))]
_PodsOf = Annotated[PodsOf, BeforeValidator(lambda value: PodsOf(str(value)))]
_Gangs = Annotated[Gangs, BeforeValidator(lambda value: Gangs(str(value)))]
_Kind = Annotated[FailureKind, BeforeValidator(_kind)]
_Occasion = Annotated[Occasion, BeforeValidator(lambda value: Occasion(str(value)))]
_Target = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"), AfterValidator(_target)]
_Cause = Annotated[Cause, BeforeValidator(lambda value: Cause(str(value).upper()))]


class BackoffForm(WrittenForm):
    initial: Duration | None = time_setting()
    maximum: Duration | None = time_setting()


class LimitsForm(WrittenForm):
    demand_ttl: Duration | None = time_setting()
    act_window: Duration | None = time_setting()
    create_timeout: Duration | None = time_setting()
    hosts_timeout: Duration | None = time_setting()
    patience: dict[_Cause, Duration] | None = setting(
        f"a map of durations, such as 2h, for any of {', '.join(cause.lower() for cause in Cause)}"
    )
    restart_grace: Duration | None = time_setting()
    idle_after: Duration | None = time_setting()
    not_running_after: Duration | None = time_setting()
    gang_hold_for: Duration | None = time_setting()
    gang_hold_at_most: Duration | None = time_setting()
    gang_yield_after: Duration | None = time_setting()
    gang_backfill: bool | None = setting("true or false")
    requeue_after: Duration | None = time_setting()
    resync_after: Duration | None = time_setting()
    evict_within: Duration | None = time_setting()
    delete_retry_after: Duration | None = time_setting()
    blocked_retry_after: Duration | None = time_setting()
    gone_ttl: Duration | None = time_setting()
    backoff: dict[_Kind, BackoffForm] | None = setting(
        f"a map of initial and maximum for any of {', '.join(kind.lower() for kind in Limits().backoff)}"
    )
    operations: int | None = setting("a whole number from 1 to 100", ge=1, le=100)


class PoolsForm(WrittenForm):
    service_account: str | None = setting("an address such as NAME@P.iam.gserviceaccount.com", pattern=r"^\S+@\S+$")
    boot_disk_gb: int | None = setting("a whole number of GB from 10 to 65536", ge=10, le=65536)
    boot_disk_type: str | None = setting("a disk type such as hyperdisk-balanced", pattern=r"^[a-z]+(-[a-z]+)+$")
    boot_disk_kms_key: str | None = setting(
        "projects/P/locations/L/keyRings/R/cryptoKeys/K",
        pattern=r"^projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+$",
    )
    confidential_storage: bool | None = setting("true, which requires a boot_disk_kms_key, or false")
    secondary_boot_disk: str | None = setting(
        "projects/P/global/images/I", pattern=r"^projects/[^/]+/global/images/[^/]+$"
    )
    image_streaming: bool | None = setting("true or false")
    max_pods_per_node: int | None = setting("a whole number from 8 to 256", ge=8, le=256)
    auto_upgrade: bool | None = setting("true or false")
    upgrades: _Upgrades | None = setting("excluded or gke")
    gvnic: bool | None = setting("true or false")
    secure_boot: bool | None = setting("true or false")
    integrity_monitoring: bool | None = setting("true or false")
    network_tags: list[Annotated[str, Field(pattern=r"^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$")]] | None = setting(
        "a list of names of a-z, 0-9 and -, up to 63 characters each"
    )
    additional_networks: list[_Network] | None = setting("a list of NETWORK:SUBNETWORK")
    workload_policy: str | None = setting(
        "a name that begins with a letter, in which {topology}, {chips} and {cores} stand for the slice's",
        pattern=r"^[a-z]([-a-z0-9]|\{(topology|chips|cores)\})*$",
    )
    accelerator_network_profile: Literal["auto"] | None = setting("auto, or omitted")
    host_maintenance_interval: Literal["PERIODIC", "AS_NEEDED"] | None = setting("PERIODIC, AS_NEEDED, or omitted")
    resource_labels: dict[_BillingKey, _BillingValue] | None = setting(
        "a map of at most 60 labels of a-z, 0-9, _ and -, up to 63 characters each, keys beginning with a letter",
        max_length=60,
    )

    @model_validator(mode="after")
    def _key_for_confidential_storage(self) -> Self:
        if self.confidential_storage and not self.boot_disk_kms_key:
            raise PydanticCustomError("without_key", "confidential_storage")
        return self

    @model_validator(mode="after")
    def _networks_or_profile(self) -> Self:
        if self.accelerator_network_profile and self.additional_networks:
            raise PydanticCustomError("with_networks", "accelerator_network_profile")
        return self


class ComputeForm(WrittenForm):
    image: str = Field(
        description="projects/P/global/images/I or projects/P/global/images/family/F",
        pattern=r"^projects/[^/]+/global/images/(family/)?[^/]+$",
    )
    subnetwork: str | None = setting(
        "S, regions/R/subnetworks/S or projects/P/regions/R/subnetworks/S",
        pattern=r"^((projects/[^/]+/)?regions/[^/]+/subnetworks/)?[^/]+$",
    )
    join: _Join | None = setting("kubeadm or none")
    control_plane: str | None = setting(
        "HOST:PORT of the API server, such as 10.0.0.2:6443", pattern=r"^[A-Za-z0-9.-]+:[0-9]{1,5}$"
    )
    kubernetes: str | None = setting('a minor version in quotes, such as "1.36"', pattern=r"^[1-9]\.[0-9]{1,3}$")
    scopes: list[Annotated[str, Field(pattern=r"^https://www\.googleapis\.com/auth/\S+$")]] | None = setting(
        "a list of scopes such as https://www.googleapis.com/auth/cloud-platform"
    )

    @model_validator(mode="after")
    def _what_kubeadm_needs(self) -> Self:
        if self.join is Join.KUBEADM and not (self.control_plane and self.kubernetes):
            raise PydanticCustomError("kubeadm", "join")
        return self


class AllowedForm(WrittenForm):
    zones: _Patterns | None = setting("a list of zones; * matches anything")
    accelerators: list[_Accelerator] | None = setting(
        "a list of accelerators such as tpu-v6e-slice; * matches anything, and each must match one"
    )
    capacity: list[_Capacity] | None = setting(
        f"a list of any of {', '.join(kind.lower() for kind in CapacityKind)}", min_length=1
    )
    reservations: _Patterns | None = setting("a list of names or projects/P/reservations/R; * matches anything")
    service_accounts: _Patterns | None = setting(
        "a list of addresses; * alone matches all, and within an address anything but @"
    )
    additional_networks: _Patterns | None = setting("a list of NETWORK:SUBNETWORK; * matches anything")
    copied_labels: _Patterns | None = setting("a list of keys of pod labels; * matches anything")
    workload_policies: _Patterns | None = setting("a list of names of workload policies; * matches anything")
    instance_templates: _Patterns | None = setting(
        "a list of projects/P/global/instanceTemplates/T, or with regions/R; * matches anything"
    )
    chips_per_slice: int | None = chips_setting()
    chips_per_jobset: int | None = chips_setting()
    chips_per_namespace: int | None = chips_setting()


class PolicyForm(AllowedForm):
    chips_per_cluster: int | None = chips_setting()
    namespaces: dict[str, AllowedForm] | None = setting(
        f"a map of {', '.join(AllowedForm.model_fields)} for each namespace"
    )


class CatalogueForm(WrittenForm):
    machines: list[_Row] | None = setting("a list of maps, each a row of the catalogue's machines.tsv")
    prices: list[_Row] | None = setting("a list of maps, each a row of the catalogue's prices.tsv")
    zones: list[_Row] | None = setting("a list of maps, each a row of the catalogue's zones.tsv")


class NotificationForm(WrittenForm):
    when: list[_Occasion] | None = setting(f"a list of any of {', '.join(Occasion)}", min_length=1)
    waiting_after: Duration | None = time_setting()
    only_if_named: bool | None = setting("true or false")


_Rules = Annotated[dict[_Target, NotificationForm], Field(max_length=10)]


class SettingsForm(WrittenForm):
    schema_: int | None = Field(default=None, alias="schema", ge=1, le=SCHEMA, description=f"1 to {SCHEMA}, or omitted")
    note: str | None = setting("text")
    path: str = Field(
        description="the cluster's full name, projects/P/locations/L/clusters/C",
        pattern=r"^projects/[^/]+/locations/[^/]+(/clusters/[^/]+)?$",
    )
    gke_id: str | None = setting("the id that GKE shows for the cluster", min_length=1)
    zone: _Zone | None = zone_setting()
    zones: list[_Zone] | None = setting("a list of names of zones, such as us-central2-b")
    reservation_zones: dict[str, _Zone] | None = setting(
        "a map of reservations and their zones, such as hall-7: us-central2-b"
    )
    pod_to_node_labels: list[_NodeLabel] | None = setting(
        "a list of keys of pod labels, none under google.com, kubernetes.io, k8s.io or gke.io"
    )
    force_on_demand: bool | None = setting("true or false")
    max_run_duration: _RunDuration | None = setting(
        f"seconds, or text such as 12h or 7d, from {duration(SHORTEST)} to {duration(LONGEST)}"
    )
    serve: list[_PodsOf] | None = setting(f"a list of any of {', '.join(PodsOf)}")
    gangs: _Gangs | None = setting(f"one of {', '.join(Gangs)}")
    hosts_per_slice: int | None = setting("a whole number from 1 to 15000", ge=1, le=15000)
    compute: ComputeForm | None = setting(f"a map of {', '.join(ComputeForm.model_fields)}")
    pools: PoolsForm | None = setting(f"a map of {', '.join(PoolsForm.model_fields)}")
    policy: PolicyForm | None = setting(f"a map of {', '.join(PolicyForm.model_fields)}")
    limits: LimitsForm | None = setting(f"a map of {', '.join(LimitsForm.model_fields)}")
    places: dict[Name, PlaceForm] | None = setting(f"a map of names, each with {fields_of(PlaceForm)}")
    ladders: dict[Name, LadderForm] | None = setting(f"a map of names, each with {fields_of(LadderForm)}")
    ladder: Name | None = setting("the name of one of the ladders")
    advice: AdviceOf | None = setting(f"one of {', '.join(Advice)}")
    warm: WarmForm | None = setting(f"a map of {fields_of(WarmForm)}")
    spares: list[SpareForm] | None = setting(f"a list of maps of {fields_of(SpareForm)}")
    spares_most_usd_an_hour: float | None = dollars_setting()
    namespaces: dict[str, NamespaceForm] | None = setting(f"a map of {fields_of(NamespaceForm)} for each namespace")
    notifications: dict[str, _Rules] | None = setting(
        f"a map of namespaces, each with a map of {', '.join(NotificationForm.model_fields)} for at most 10 targets, "
        f"whose names are of a-z, 0-9 and -, and none is {NOBODY}"
    )
    catalogue: CatalogueForm | None = setting(f"a map of {', '.join(CatalogueForm.model_fields)}")

    @model_validator(mode="after")
    def _path_of_its_kind(self) -> Self:
        if ("/clusters/" in self.path) is (self.compute is not None):
            raise PydanticCustomError("path_of_gke" if self.compute else "path_of_compute", "path")
        return self


_PLACES: Mapping[tuple[str, str], tuple[str, str]] = {
    (prefix.partition(".")[0], field.alias or name): (f"{prefix}{field.alias or name}", field.description or "")
    for prefix, model in (
        ("policy.namespaces.NAME.", AllowedForm),
        ("", SettingsForm),
        ("compute.", ComputeForm),
        ("pools.", PoolsForm),
        ("policy.", PolicyForm),
        ("limits.", LimitsForm),
        ("limits.backoff.KIND.", BackoffForm),
        ("notifications.NAMESPACE.TARGET.", NotificationForm),
        ("places.NAME.", PlaceForm),
        ("ladders.NAME.rungs.", RungForm),
        ("ladders.NAME.", LadderForm),
        ("warm.", WarmForm),
        ("spares.", SpareForm),
        ("namespaces.NAMESPACE.", NamespaceForm),
        ("namespaces.NAMESPACE.warm.", WarmForm),
        ("catalogue.", CatalogueForm),
    )
    for name, field in model.model_fields.items()
}
"""By section and name, the full path of each setting, and its valid values."""
_SECTIONS = frozenset(section for section, _ in _PLACES)


_TOGETHER: Mapping[str, str] = {
    "without_key": "pools.confidential_storage requires a key: set boot_disk_kms_key as well",
    "with_networks": "pools.accelerator_network_profile excludes additional_networks: leave one of them out",
    "kubeadm": "compute.join: kubeadm requires control_plane and kubernetes: set both",
    "path_of_gke": "path: a cluster with compute is not one of GKE: write projects/P/locations/L, without /clusters/",
    "path_of_compute": "path: must end in /clusters/C; for a self-managed cluster add compute",
}
"""What is said of settings that do not go together, by the type of the error."""


def explained(error: ErrorDetails) -> str:
    """Return the error in Kubernetes' form, as in `limits.demand_ttl: Invalid value: 'soon': must be seconds, …`."""
    where = [str(part) for part in error["loc"] if part != "[key]"]
    section = where[0] if len(where) > 1 and where[0] in _SECTIONS else ""
    if error["type"] in _TOGETHER:
        return _TOGETHER[error["type"]]
    if error["type"] == "extra_forbidden":
        meant = _meant(section, where[-1])
        return f"{'.'.join(where)}: Unknown field: {f'did you mean {meant}?' if meant else 'remove it'}"
    wrong = "Required value" if error["type"] == "missing" else f"Invalid value: {error['input']!r}"
    keys = (*(("", part) for part in where[:1]), *((section, part) for part in where))
    valid = [_PLACES[key][1] for key in keys if key in _PLACES]
    return f"{'.'.join(where) or 'document'}: {wrong}: must be {valid[-1] if valid else 'a map of settings'}"


def _meant(section: str, name: str) -> str | None:
    """Return the path of the setting with the nearest name, in the same section if it is there; None: none is near."""
    near = difflib.get_close_matches(name, [each for _, each in _PLACES], n=1)
    paths = {place: path for (place, each), (path, _) in _PLACES.items() if [each] == near}
    return paths.get(section) or next(iter(paths.values()), None)
