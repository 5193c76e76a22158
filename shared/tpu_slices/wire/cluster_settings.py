"""The settings of a cluster as operators write them, in the document `clusters/{cluster}`.

    path: projects/P/locations/L/clusters/C
    zone: us-central2-b
    pools:
      service_account: tpu-nodes@P.iam.gserviceaccount.com
    policy:
      namespaces:
        research: {capacity: [reservation], chips_per_namespace: 512}
    limits:
      demand_ttl: 15m
      backoff:
        stockout: {initial: 1m, maximum: 15m}
    notifications:
      research:
        ml-slack: {when: [waiting, ended], waiting_after: 20m}
    warm: {for: 15m, most_chips: 256}
    spares:
    - {accelerator: tpu-v6e-slice, topology: 4x4, place: booked, count: 2, for: [research]}
    namespaces:
      research: {warm: {for: 1h, across: workload}}
    catalogue:
      prices:
      - {accelerator: tpu-v6e-slice, region: us-east5, kind: on_demand, usd_per_chip_hour: 2.16, read: 2026-11-30,
         source: our contract}

Only `path` is required: all else has the defaults of `tpu_slices.domain.model.clusters`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from pydantic import ValidationError

from tpu_slices.domain.catalogue.accelerators import CATALOGUE, accelerators_with
from tpu_slices.domain.catalogue.prices import prices_with
from tpu_slices.domain.catalogue.rows import Cells, WrongRow, rows_of_settings
from tpu_slices.domain.catalogue.zones import zones_with
from tpu_slices.domain.model.clusters import (
    Allowed,
    Backoff,
    CatalogueSettings,
    ClusterSettings,
    ComputeSettings,
    Limits,
    Policy,
    PoolSettings,
)
from tpu_slices.domain.model.notifications import NotificationRule
from tpu_slices.domain.model.slices import ClusterId, cluster_id
from tpu_slices.domain.planning.zones import impossible_zones
from tpu_slices.ports.errors import Permanent
from tpu_slices.wire.documents import SCHEMA, Fields, Key, native
from tpu_slices.wire.forms.capacity import namespace_of, warm_of, written_namespace, written_warm
from tpu_slices.wire.forms.ladders import impossible_ladders, ladders_of, places_of, written_ladders
from tpu_slices.wire.forms.spares import impossible_spares, spares_of, written_spares
from tpu_slices.wire.settings_form import (
    AllowedForm,
    CatalogueForm,
    ComputeForm,
    LimitsForm,
    NotificationForm,
    PolicyForm,
    PoolsForm,
    SettingsForm,
    explained,
)


@lru_cache
def settings_key(cluster: ClusterId) -> Key:
    return Key("clusters", cluster)


@lru_cache
def accepted_key(cluster: ClusterId) -> Key:
    """Return the key of the last accepted settings, which stay in force while `clusters/{cluster}` is invalid."""
    return Key("accepted", cluster)


@lru_cache
def pause_key(cluster: ClusterId) -> Key:
    """Return the key of the document that exists while a cluster is paused or retired.

    Its fields are `message`, and `paused_at` or `retired_at`. Code that does not know the latter takes it as a pause.
    """
    return Key("pauses", cluster)


def with_pause(settings: ClusterSettings, pause: Mapping[str, Any] | None) -> ClusterSettings:
    """Return the settings of a cluster with this document, if there is one, at `pause_key`."""
    if pause is None:
        return settings
    message = str(pause.get("message"))
    return replace(settings, retired=message) if "retired_at" in pause else replace(settings, paused=message)


def decode_settings(cluster: ClusterId, document: Mapping[str, Any], version: str) -> ClusterSettings:
    """Return the settings of a document; raise Permanent with every invalid field and what it must be."""
    try:
        cluster_id(cluster)
        written = SettingsForm.model_validate(document, context={"accelerators": _labels(document)})
    except ValidationError as invalid:
        problems = dict.fromkeys(explained(error) for error in invalid.errors(include_url=False))
        raise Permanent(f"clusters/{cluster}: {'; '.join(problems)}") from invalid
    except ValueError as error:
        raise Permanent(f"clusters/{cluster}: {error}") from error
    settings = ClusterSettings(
        cluster=cluster,
        version=version,
        path=written.path,
        **{name: value for name, value in written.given().items() if name in _AS_WRITTEN},
        zones=tuple(written.zones or ()),
        pod_to_node_labels=tuple(written.pod_to_node_labels or ()),
        serve=tuple(dict.fromkeys(written.serve or ())),
        pools=_pools(written.pools or PoolsForm(), written.compute),
        policy=_policy(written.policy or PolicyForm()),
        limits=_limits(written.limits or LimitsForm()),
        notifications={
            namespace: {target: _rule(rule) for target, rule in rules.items()}
            for namespace, rules in (written.notifications or {}).items()
        },
        warm=warm_of(written.warm),
        spares=spares_of(written.spares),
        namespaces={name: namespace_of(own) for name, own in (written.namespaces or {}).items()},
        catalogue=_catalogue(written.catalogue or CatalogueForm()),
        places=places_of(written.places),
        ladders=ladders_of(written.ladders),
    )
    checks = (_wrong_rows, impossible_zones, impossible_ladders)
    impossible = "; ".join(each for check in checks for each in check(settings))
    impossible = impossible or "; ".join(impossible_spares(settings))
    if impossible:
        raise Permanent(f"clusters/{cluster}: {impossible}")
    return settings


def encode_settings(settings: ClusterSettings) -> Fields:
    """Return settings as `decode_settings` reads them; name, version and pause are not part of the document."""
    document: Fields = native(settings)
    pools, policy = settings.pools, settings.policy
    return {
        "schema": SCHEMA,
        **{name: document[name] for name in document if name not in {"cluster", "version", "paused", "retired"}},
        **({"compute": document["pools"]["compute"]} if settings.self_managed else {}),
        "pools": {
            **{name: value for name, value in document["pools"].items() if name != "compute"},
            "additional_networks": [str(network) for network in pools.additional_networks],
        },
        "policy": {
            **native(policy.everyone),
            "chips_per_cluster": policy.chips_per_cluster,
            "namespaces": {name: native(allowed) for name, allowed in policy.namespaces.items()},
        },
        "warm": written_warm(settings.warm),
        "spares": written_spares(settings.spares),
        "namespaces": {name: written_namespace(own) for name, own in settings.namespaces.items()},
        "ladders": written_ladders(settings.ladders),
        "catalogue": {section: [dict(row) for row in rows] for section, rows in settings.catalogue.sections},
    }


_AS_WRITTEN = frozenset(
    {
        "gke_id",
        "zone",
        "ladder",
        "advice",
        "reservation_zones",
        "force_on_demand",
        "max_run_duration",
        "gangs",
        "hosts_per_slice",
        "spares_most_usd_an_hour",
    }
)


def _pools(written: PoolsForm, compute: ComputeForm | None) -> PoolSettings:
    given = written.given()
    if compute is not None:
        scopes = {"scopes": tuple(compute.scopes)} if compute.scopes is not None else {}
        given["compute"] = ComputeSettings(**{**compute.given(), **scopes})
    for name in ("network_tags", "additional_networks"):
        given[name] = tuple(given.get(name, ()))
    return PoolSettings(**given)


def _policy(written: PolicyForm) -> Policy:
    """Return the policy; a namespace has everyone's values except those that are set for it."""
    everyone = _allowed(written, Allowed())
    return Policy(
        everyone=everyone,
        namespaces={name: _allowed(own, everyone) for name, own in (written.namespaces or {}).items()},
        chips_per_cluster=written.chips_per_cluster,
    )


def _allowed(written: AllowedForm, otherwise: Allowed) -> Allowed:
    given: dict[str, Any] = {name: value for name, value in written.given().items() if name in AllowedForm.model_fields}
    frozen: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    return replace(otherwise, **frozen)


def _labels(document: Mapping[str, Any]) -> frozenset[str]:
    """Return the accelerators that the policy may name: the catalogue's and, as far as they can be read, its own."""
    catalogue = document.get("catalogue")
    rows = catalogue.get("machines") if isinstance(catalogue, Mapping) else None
    own = (row.get("accelerator") for row in rows if isinstance(row, Mapping)) if isinstance(rows, list) else ()
    return frozenset({*CATALOGUE, *map(str, own)})


def _rule(written: NotificationForm) -> NotificationRule:
    given = written.given()
    return NotificationRule(**{**given, **({"when": tuple(dict.fromkeys(given["when"]))} if "when" in given else {})})


def _catalogue(written: CatalogueForm) -> CatalogueSettings:
    return CatalogueSettings(**{section: tuple(rows) for section, rows in written.given().items()})


def _check_known(section: str, rows: tuple[Cells, ...], known: Collection[str]) -> None:
    for row in rows_of_settings(section, rows):
        if (label := row.text("accelerator")) not in known:
            near = difflib.get_close_matches(label, known, n=1, cutoff=0.4)
            meant = f"did you mean {near[0]}?" if near else "add one"
            row.fail("accelerator", f'"{label}" is in no row of machines: {meant}')


_READERS: Mapping[str, Callable[[tuple[Cells, ...]], object]] = {
    "machines": accelerators_with,
    "prices": prices_with,
    "zones": zones_with,
}


def _wrong_rows(settings: ClusterSettings) -> Iterator[str]:
    """Yield what is wrong in the rows of each section: the first of it."""
    known = {*CATALOGUE, *(dict(row).get("accelerator", "") for row in settings.catalogue.machines)}
    for section, rows in settings.catalogue.sections:
        try:
            if rows:
                _READERS[section](rows)
                _check_known(section, rows, known)
        except WrongRow as wrong:
            yield str(wrong)


def _limits(written: LimitsForm) -> Limits:
    backoff = {**Limits().backoff}
    for kind, given in (written.backoff or {}).items():
        default = backoff[kind]
        initial = given.initial or default.initial
        backoff[kind] = Backoff(initial, max(initial, given.maximum or default.maximum))  # the default may be too short
    patience = {**Limits().patience, **(written.patience or {})}
    return Limits(**{**written.given(), "backoff": backoff, "patience": patience})
