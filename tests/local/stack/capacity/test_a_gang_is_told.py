"""What a researcher reads of a gang whose last slice is out of stock, on the local stack, until it starts."""

from __future__ import annotations

import re

import pytest

from tests.examples.cluster import Cluster
from tests.local.stack.capacity.site import LISTED, Site, a_jobset, end, of, run
from tpu_slices.domain.model.gangs import GANG

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket, pytest.mark.real]

SLICES = 2
HELD = (
    r"1 of 2 slices ready; told-workers-1 since [\d:]+ UTC: us-central2-b (?:is|was) out of tpu-v6e-slice 4x4.* "
    r"Those that stand have been held since [\d:]+ UTC \(16 chips are billed, 43\.20 USD per hour by list price\); "
    r"at [\d:]+ UTC all are let go"
)
STARTED = "2 of 2 slices ready; its pods were released together after"


def is_told(own: Cluster, reason: str, text: str) -> bool:
    """Return whether the Event of a JobSet's report with this reason has a text."""
    events = own.items("events", fields=f"involvedObject.kind=JobSet,involvedObject.name=told,reason={reason}")
    return any(re.search(text, each["message"]) for each in events)


def test_a_gang_that_lacks_a_slice_is_told_what_it_costs_and_starts_once_there_is_stock(site: Site) -> None:
    own = site.cluster.within(LISTED)
    with site.short_of("on-demand", "tpu-told-1-.*"):
        own.create([a_jobset("told", SLICES, **{GANG: "all"})])
        own.until(lambda: is_told(own, "GangHeld", HELD))
        assert own.running(of("told")) == []
    own.until(lambda: run(own, "told", SLICES))
    own.until(lambda: is_told(own, "GangStarted", STARTED))
    read = own.kubectl("describe", "jobset", "told")
    for reason, text in {"GangHeld": HELD, "GangStarted": STARTED}.items():
        assert re.search(rf"{reason} .*{text}", read), read
    assert own.get("jobsets", "told")["status"].get("restarts", 0) == 0, "no pod ran before all slices stood"
    end(own, "told")
    own.until(lambda: not site.stands("told"))
