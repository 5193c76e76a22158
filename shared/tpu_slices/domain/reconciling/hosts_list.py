"""When the relay is asked for all hosts. Pure."""

from __future__ import annotations

from datetime import datetime

from tpu_slices.domain.records.heartbeats import SILENT_AFTER, RelayHeartbeat


def hosts_to_be_listed(heartbeat: RelayHeartbeat, now: datetime) -> bool:
    """Return whether to ask the relay for all hosts: they have differed from the records for longer than facts take."""
    if heartbeat.relay.silent(now):
        return False
    times = (heartbeat.hosts_confirmed_at or heartbeat.uninterrupted_since, heartbeat.hosts_asked_at)
    return all(at is None or now - at > SILENT_AFTER for at in times)


def hosts_awaited(heartbeat: RelayHeartbeat, now: datetime) -> bool:
    """Return whether the relay was asked for all hosts lately, and they have not agreed with the records since."""
    asked, confirmed = heartbeat.hosts_asked_at, heartbeat.hosts_confirmed_at
    return asked is not None and now - asked <= SILENT_AFTER and (confirmed is None or confirmed < asked)
