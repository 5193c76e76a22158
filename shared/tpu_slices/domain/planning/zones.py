"""The zone of a slice, and the zones that a cluster can have slices in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.slices import Capacity
from tpu_slices.domain.planning.host_labels import ZONE
from tpu_slices.domain.planning.obstacles import DoesNotFit

_ZONE = re.compile(r"([a-z]+-[a-z]+\d+)-[a-z0-9]+")


def zone_of(selector: Mapping[str, str], capacity: Capacity, settings: ClusterSettings) -> str:
    """Return the zone that the pod selects, else its reservation's, else that of the settings.

    Raise DoesNotFit if none of them names one, or if the cluster can have no slices in it.
    """
    selected = selector.get(ZONE)
    if selected:
        return checked(selected, f'{ZONE}: the pod selects "{selected}"', settings)
    reservation = capacity.reservation_itself or ""
    reserved = settings.reservation_zones.get(reservation)
    if reserved:
        return checked(reserved, _of_reservation(reservation, reserved), settings)
    if settings.zone:
        return checked(settings.zone, _of_settings("zone", settings.zone), settings)
    raise DoesNotFit(f"{ZONE}: neither the pod nor the cluster's settings name a zone: set one of them")


def impossible_zones(settings: ClusterSettings) -> Iterator[str]:
    """Yield what is wrong with each zone of the settings in which the cluster can have no slices."""
    of_region = _region_of(settings)
    yield from (
        _impossible(_of_settings("zones", zone), f"any zone of {of_region}")
        for zone in settings.zones
        if not _is_in(zone, of_region)
    )
    named = [(settings.zone, _of_settings("zone", settings.zone))] if settings.zone else []
    named += [(zone, _of_reservation(name, zone)) for name, zone in settings.reservation_zones.items()]
    for zone, source in named:
        try:
            checked(zone, source, settings)
        except DoesNotFit as no:
            yield str(no)


def checked(zone: str, source: str, settings: ClusterSettings) -> str:
    """Return the zone; raise DoesNotFit if the cluster can have no slices in it."""
    region = _region_of(settings)
    choices = [choice for choice in settings.zones if _is_in(choice, region)]
    if not _is_in(zone, region) or (choices and zone not in choices):
        raise DoesNotFit(_impossible(source, _any_of(choices) if choices else f"any zone of {region}"))
    return zone


def _region_of(settings: ClusterSettings) -> str:
    """Return the region of the cluster, whose location is a region or a zone of one."""
    location = settings.path.split("/")[3]
    zone = _ZONE.fullmatch(location)
    return zone[1] if zone else location


def _is_in(zone: str, region: str) -> bool:
    found = _ZONE.fullmatch(zone)
    return found is not None and found[1] == region


def _of_settings(setting: str, zone: str) -> str:
    return f'{setting}: the cluster\'s settings have "{zone}"'


def _of_reservation(name: str, zone: str) -> str:
    return f"{_of_settings('reservation_zones', zone)} for {name}"


def _impossible(source: str, choices: str) -> str:
    return f"{source}, where this cluster can have no slices: it can have them in {choices}"


def _any_of(zones: list[str]) -> str:
    *most, last = zones
    return f"{', '.join(most)} or {last}" if most else last
