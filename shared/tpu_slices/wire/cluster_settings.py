"""The settings of a cluster as people write them, in the document `clusters/{cluster}`.

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

Only `path` is needed: everything else has the defaults of `tpu_slices.domain.model.clusters`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from tpu_slices.domain.model.clusters import Allowed, Backoff, ClusterSettings, Limits, Policy, PoolSettings
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.ports.errors import Permanent
from tpu_slices.wire.documents import SCHEMA, Fields, Key, native
from tpu_slices.wire.settings_form import AllowedForm, LimitsForm, PolicyForm, PoolsForm, SettingsForm, explained


def settings_key(cluster: ClusterId) -> Key:
    return Key("clusters", cluster)


def accepted_key(cluster: ClusterId) -> Key:
    """Name the document with the settings that were last found good: they hold while a person's slip does not."""
    return Key("accepted", cluster)


def pause_key(cluster: ClusterId) -> Key:
    """Name the document that is there while a cluster is paused: `message`, for people, and `paused_at`."""
    return Key("pauses", cluster)


def decode_settings(cluster: ClusterId, document: Mapping[str, Any], version: str) -> ClusterSettings:
    """Read the document; Permanent names every field that is wrong, and what to write there instead."""
    try:
        written = SettingsForm.model_validate(document)
    except ValidationError as invalid:
        problems = dict.fromkeys(explained(error) for error in invalid.errors(include_url=False))
        raise Permanent(f"clusters/{cluster}: {'; '.join(problems)}") from invalid
    return ClusterSettings(
        cluster=cluster,
        version=version,
        path=written.path,
        **{name: value for name, value in written.given().items() if name in _AS_WRITTEN},
        pod_to_node_labels=tuple(written.pod_to_node_labels or ()),
        pools=_pools(written.pools or PoolsForm()),
        policy=_policy(written.policy or PolicyForm()),
        limits=_limits(written.limits or LimitsForm()),
    )


def encode_settings(settings: ClusterSettings) -> Fields:
    """Write settings as `decode_settings` reads them; name, version and pause are not the document's."""
    document: Fields = native(settings)
    pools, policy = settings.pools, settings.policy
    return {
        "schema": SCHEMA,
        **{name: document[name] for name in document if name not in {"cluster", "version", "paused"}},
        "pools": {
            **document["pools"],
            "additional_networks": [str(network) for network in pools.additional_networks],
        },
        "policy": {
            **native(policy.everyone),
            "chips_per_cluster": policy.chips_per_cluster,
            "namespaces": {name: native(allowed) for name, allowed in policy.namespaces.items()},
        },
    }


_AS_WRITTEN = frozenset({"gke_id", "zone", "reservation_zones", "force_on_demand", "hosts_per_slice"})


def _pools(written: PoolsForm) -> PoolSettings:
    given = written.given()
    for name in ("network_tags", "additional_networks"):
        given[name] = tuple(given.get(name, ()))
    return PoolSettings(**given)


def _policy(written: PolicyForm) -> Policy:
    """Read the policy; a namespace has what is said for everyone, but for what is said of it."""
    everyone = _allowed(written, Allowed())
    return Policy(
        everyone=everyone,
        namespaces={name: _allowed(own, everyone) for name, own in (written.namespaces or {}).items()},
        chips_per_cluster=written.chips_per_cluster,
    )


def _allowed(written: AllowedForm, otherwise: Allowed) -> Allowed:
    given: dict[str, Any] = {name: it for name, it in written.given().items() if name in AllowedForm.model_fields}
    exact: dict[str, Any] = {name: tuple(it) if isinstance(it, list) else it for name, it in given.items()}
    return replace(otherwise, **exact)


def _limits(written: LimitsForm) -> Limits:
    backoff = {**Limits().backoff}
    for kind, given in (written.backoff or {}).items():
        usual = backoff[kind]
        initial = given.initial or usual.initial
        backoff[kind] = Backoff(initial, max(initial, given.maximum or usual.maximum))  # the usual may be too short now
    return Limits(**{**written.given(), "backoff": backoff})
