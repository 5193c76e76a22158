"""The settings of a cluster as people write them, in the document `clusters/{cluster}`.

    path: projects/P/locations/L/clusters/C
    zone: us-central2-b
    pools:
      service_account: tpu-nodes@P.iam.gserviceaccount.com
    limits:
      want_ttl: 15m
      retries:
        stockout: {first: 1m, longest: 15m}

Only `path` is needed: everything else has the defaults of `shared.domain.clusters`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from shared.domain.clusters import Backoff, ClusterSettings, Limits, PoolSettings
from shared.domain.observations import FailureKind
from shared.domain.slices import ClusterId
from shared.ports import Permanent
from shared.wire.documents import SCHEMA, Fields, Key, native

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
    if kind not in Limits().retries:
        raise ValueError(f"{value} is never tried again by itself")
    return kind


_Duration = Annotated[timedelta, BeforeValidator(_duration), Field(gt=timedelta(0), le=timedelta(days=365))]
_Kind = Annotated[FailureKind, BeforeValidator(_kind)]


def _remedy(what_to_write: str, **bounds: Any) -> Any:
    """Declare a setting that has a default; the description is what a person is told where it is wrong."""
    return Field(default=None, description=what_to_write, **bounds)


def _time() -> Any:
    return _remedy("seconds, or text such as 90s, 15m, 2h or 30d")


class _Written(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    def given(self) -> Fields:
        """Give what was written; empty is as good as not written."""
        return {name: value for name in self.model_fields_set if (value := getattr(self, name)) is not None}


class _Backoff(_Written):
    first: _Duration | None = _time()
    longest: _Duration | None = _time()


class _Limits(_Written):
    want_ttl: _Duration | None = _time()
    act_window: _Duration | None = _time()
    create_patience: _Duration | None = _time()
    look_again: _Duration | None = _time()
    backstop: _Duration | None = _time()
    delete_again: _Duration | None = _time()
    blocked_again: _Duration | None = _time()
    gone_ttl: _Duration | None = _time()
    retries: dict[_Kind, _Backoff] | None = _remedy(
        f"first and longest under any of {', '.join(kind.lower() for kind in Limits().retries)}"
    )
    operations: int | None = _remedy("a whole number from 1 to 100", ge=1, le=100)


class _Pools(_Written):
    service_account: str | None = _remedy("an address such as NAME@P.iam.gserviceaccount.com", pattern=r"^\S+@\S+$")
    boot_disk_gb: int | None = _remedy("a whole number of GB from 10 to 65536", ge=10, le=65536)
    max_pods_per_node: int | None = _remedy("a whole number from 8 to 256", ge=8, le=256)
    auto_upgrade: bool | None = _remedy("true or false")
    network_tags: list[Annotated[str, Field(pattern=r"^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$")]] | None = _remedy(
        "a list of names of a-z, 0-9 and -, up to 63 characters each"
    )


class _Settings(_Written):
    schema_: int | None = Field(default=None, alias="schema", ge=1, le=SCHEMA, description=f"1 to {SCHEMA}, or nothing")
    note: str | None = _remedy("text: it is for people")
    path: str = Field(
        description="the cluster's full name: projects/P/locations/L/clusters/C",
        pattern=r"^projects/[^/]+/locations/[^/]+/clusters/[^/]+$",
    )
    gke_id: str | None = _remedy("the id in GKE's own description of the cluster", min_length=1)
    zone: str | None = _remedy("the name of a zone, as in us-central2-b", pattern=r"^[a-z]+-[a-z]+\d+-[a-z0-9]+$")
    pools: _Pools | None = _remedy(f"a map of {', '.join(_Pools.model_fields)}")
    limits: _Limits | None = _remedy(f"a map of {', '.join(_Limits.model_fields)}")


_PLACES: Mapping[str, tuple[str, str]] = {
    field.alias or name: (f"{prefix}{field.alias or name}", field.description or "")
    for prefix, model in (("", _Settings), ("pools.", _Pools), ("limits.", _Limits), ("limits.retries.KIND.", _Backoff))
    for name, field in model.model_fields.items()
}
"""Where each setting belongs, and what to write there."""


def settings_key(cluster: ClusterId) -> Key:
    return Key("clusters", cluster)


def decode_settings(cluster: ClusterId, document: Mapping[str, Any], version: str) -> ClusterSettings:
    """Read the document; Permanent names every field that is wrong, and what to write there instead."""
    try:
        written = _Settings.model_validate(document)
    except ValidationError as invalid:
        problems = dict.fromkeys(_explain(fault) for fault in invalid.errors(include_url=False))
        raise Permanent(f"clusters/{cluster}: {'; '.join(problems)}") from invalid
    return ClusterSettings(
        cluster=cluster,
        version=version,
        path=written.path,
        gke_id=written.gke_id,
        zone=written.zone,
        pools=_pools(written.pools or _Pools()),
        limits=_limits(written.limits or _Limits()),
    )


def encode_settings(settings: ClusterSettings) -> Fields:
    """Write settings as `decode_settings` reads them; the name and the version are the document's own."""
    document: Fields = native(settings)
    return {"schema": SCHEMA, **{name: document[name] for name in document if name not in {"cluster", "version"}}}


def _pools(written: _Pools) -> PoolSettings:
    return PoolSettings(**{**written.given(), "network_tags": tuple(written.network_tags or ())})


def _limits(written: _Limits) -> Limits:
    retries = {**Limits().retries}
    for kind, backoff in (written.retries or {}).items():
        usual = retries[kind]
        first = backoff.first or usual.first
        retries[kind] = Backoff(first, max(first, backoff.longest or usual.longest))  # the usual may be too short now
    return Limits(**{**written.given(), "retries": retries})


def _explain(fault: ErrorDetails) -> str:
    """Say where the fault is and what to write there, as in `limits.want_ttl cannot be 'soon': write seconds, …`."""
    where = [str(part) for part in fault["loc"] if part != "[key]"]
    if fault["type"] == "extra_forbidden":
        near = difflib.get_close_matches(where[-1], _PLACES, n=1)
        return f"{'.'.join(where)} is no setting: " + (f"is {_PLACES[near[0]][0]} meant?" if near else "remove it")
    wrong = "is missing" if fault["type"] == "missing" else f"cannot be {fault['input']!r}"
    remedies = [_PLACES[part][1] for part in where if part in _PLACES]
    return f"{'.'.join(where) or 'the document'} {wrong}: write {remedies[-1] if remedies else 'a map of settings'}"
