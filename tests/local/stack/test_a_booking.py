"""JobSets on the local stack that wait for a reservation: nothing is asked before it begins, nor beyond its hosts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
import yaml

from infra.local.addresses import Addresses
from infra.local.cluster_choice import Embedded
from infra.local.demo.http import get_json, press
from infra.local.plan import planned
from infra.local.settings import checked, file_of, put
from infra.local.stack import Stack, running
from tests.examples.cluster import FOR_EVER, Json
from tests.local.stack.capacity.site import HOSTS, a_jobset, of
from tpu_slices.domain.model.slices import ClusterId
from tpu_standins.clients.api import Api
from tpu_standins.kubelet.keys import RUN_SECONDS
from tpu_standins.prerequisites import Tools
from tpu_standins.testing.waiting import until

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket, pytest.mark.real]

NAMES, AT_A_TIME = ("one", "two", "three"), 2
BEGINS_IN = 20
"""Seconds: the JobSets have been looked at by then, unless the machine is very slow."""
WITHOUT_SCRIPTS = "no host of these JobSets joins by a script"
PACE = ("--create-seconds", "1", "--delete-seconds", "0.5", "--join-seconds", "0.2")


def impatient(addresses: Addresses) -> None:
    settings = yaml.safe_load(file_of(addresses).read_text())
    settings["limits"] |= {"requeue_after": "2s", "resync_after": "4s"}
    put(checked(yaml.safe_dump(settings), ClusterId(addresses.cluster_id)), addresses)


@pytest.fixture
def stack(tools: Tools, tmp_path: Any) -> Iterator[Stack]:
    assert tools.java.exists()
    plan = planned(tmp_path, Embedded(), compute=True, sweep_seconds=1)
    with running(replace(plan, unbooted=WITHOUT_SCRIPTS, compute_arguments=PACE), impatient) as found:
        yield found


def booked(name: str) -> Json:
    jobset = a_jobset(name)
    (job,) = jobset["spec"]["replicatedJobs"]
    job["template"]["spec"]["template"]["spec"]["nodeSelector"]["cloud.google.com/reservation-name"] = "hall-7"
    return jobset


def run(api: Api, name: str) -> bool:
    pods: list[Json] = api.list("pods", "default", labelSelector=of(name))["items"]
    return [pod["status"].get("phase") for pod in pods].count("Running") == HOSTS


def end(api: Api, name: str) -> None:
    for pod in api.list("pods", "default", labelSelector=of(name))["items"]:
        api.patch("pods", "default", pod["metadata"]["name"], {"metadata": {"annotations": {RUN_SECONDS: "0"}}})


def test_nothing_is_made_before_a_booking_begins_and_then_no_more_than_fits(stack: Stack) -> None:
    buttons, place = stack.addresses.buttons, {"project": stack.addresses.project, "zone": "us-central2-b"}
    hall = {**place, "name": "hall-7", "machine_type": "ct6e-standard-4t", "count": AT_A_TIME * HOSTS}
    press(f"{buttons}/bookings", {**hall, "reservation": "hall-7", "starts_in": BEGINS_IN, "ends_in": float(FOR_EVER)})
    (booking,) = get_json(f"{buttons}/reservations")["bookings"]
    with closing(Api.of(stack.addresses.kubeconfig)) as api:
        for name in NAMES:
            api.create("jobsets", booked(name) | {"metadata": {**booked(name)["metadata"], "namespace": "default"}})
        until(lambda: sum(run(api, name) for name in NAMES) == AT_A_TIME, "as many as fit to run")
        (last,) = (name for name in NAMES if not run(api, name))
        for name in NAMES:
            if name != last:
                end(api, name)
        until(lambda: run(api, last), "the last to run once there is room")
        end(api, last)
        until(lambda: not get_json(f"{buttons}/groups")["groups"], "the slices to go")
    made = [each for each in get_json(f"{buttons}/calls")["calls"] if each["method"] == "instanceGroupManagers.insert"]
    assert len(made) <= len(NAMES)
    assert min(each["at"] for each in made) >= booking["starts"]
    assert not [each for each in made if each["message"]]
