"""The HTTP requests that the fault injection commands send."""

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from infra.local.up import trouble
from infra.local.up.note import Note, NothingUp, forget
from infra.local.up.trouble import Press, seconds, share

WHERE = Note(
    control="http://c",
    gke="http://g",
    faults="http://p",
    cluster="p",
    environment={"CLUSTER": "demo"},
    logs="/logs",
)


ON_COMPUTE = replace(WHERE, compute=True)


def asked(**options: Any) -> argparse.Namespace:
    return argparse.Namespace(**{"zone": None, "pools": ".*", "lasting": None, "times": 1, **options})


@pytest.mark.parametrize(("text", "amount"), [("90s", 90), ("5m", 300), ("1h", 3600), ("0.5m", 30)])
def test_a_time_is_read(text: str, amount: float) -> None:
    assert seconds(text) == amount


@pytest.mark.parametrize("text", ["5", "m", "5 m", "-5m", "5d"])
def test_what_is_no_time_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="write 90s, 5m or 1h"):
        seconds(text)


@pytest.mark.parametrize("text", ["0%", "101%", "10", "x%"])
def test_what_is_no_share_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="write 10%"):
        share(text)


def test_a_stockout_lasts_for_a_time_or_for_a_number_of_creations() -> None:
    for_a_time = trouble.fault("stockout", asked(lasting=300.0, zone="z"), WHERE)
    assert for_a_time == Press(
        "http://g/faults", "POST", {"kind": "stockout", "pools": ".*", "zone": "z", "for": 300.0}
    )
    assert trouble.fault("stockout", asked(times=2), WHERE).body == {
        "kind": "stockout",
        "pools": ".*",
        "zone": None,
        "times": 2,
    }


def test_a_shortage_is_of_a_capacity_and_of_a_size() -> None:
    given = asked(lasting=90.0, zone="z", capacity="spot", at_least=16, available=["y"])
    assert trouble.fault("stockout", given, WHERE).body == {
        "kind": "stockout",
        "pools": ".*",
        "zone": "z",
        "for": 90.0,
        "capacity": "spot",
        "at_least": 16,
        "available": ["y"],
    }


def test_a_shortage_is_told_with_its_capacity_and_its_size() -> None:
    fault = {"kind": "stockout", "method": "CreateNodePool", "zone": "z", "pools": ".*", "until": 140.0, "times": None}
    assert trouble.in_words({**fault, "capacity": "spot", "at_least": 16}, 100.0) == (
        "stockout: CreateNodePool of spot pools of 16 hosts and more .* in z, for another 40 s"
    )


def test_a_share_of_the_calls_fails_at_gke_or_at_the_api_server() -> None:
    of_gke = trouble.api_errors(asked(share=0.1, of="gke", lasting=60.0), WHERE)
    assert (of_gke.url, of_gke.body and of_gke.body["share"]) == ("http://g/faults", 0.1)
    of_kubernetes = trouble.api_errors(asked(share=0.1, of="kubernetes", lasting=60.0), WHERE)
    assert of_kubernetes.url == "http://p/faults"


def test_faults_before_the_api_server_are_said_with_what_is_left_of_them() -> None:
    fault = {"code": 503, "share": 0.1, "for": 40.0}
    assert trouble.of_api_server(fault) == "503: 10% of the relay's calls to Kubernetes, for another 40 s"


def test_what_is_ordered_is_said_with_what_is_left_of_it() -> None:
    fault = {"kind": "stockout", "method": "CreateNodePool", "zone": "z", "pools": ".*", "share": 1.0}
    assert trouble.in_words({**fault, "until": 140.0, "times": None}, 100.0) == (
        "stockout: CreateNodePool of pools .* in z, for another 40 s"
    )
    often = {**fault, "kind": "unavailable", "method": "*", "zone": None, "share": 0.1, "until": None, "times": 3}
    assert trouble.in_words(often, 100.0) == "unavailable: 10% of * of pools .* in every zone, for the next 3"


def test_a_stack_is_found_by_the_note_it_left(tmp_path: Path) -> None:
    WHERE.write(tmp_path)
    assert Note.read(tmp_path) == WHERE
    forget(tmp_path)
    with pytest.raises(NothingUp, match="start one with `make local`"):
        Note.read(tmp_path)


def test_on_compute_engine_a_stockout_is_of_groups_and_hosts_are_instances() -> None:
    assert trouble.fault("stockout", asked(lasting=60.0), ON_COMPUTE).body == {
        "kind": "stockout",
        "names": ".*",
        "zone": None,
        "for": 60.0,
    }
    assert trouble.on_hosts("break", "tpu-a-1", ON_COMPUTE) == Press(
        "http://g/instances/silence", "POST", {"group": "tpu-a-1"}
    )


@pytest.mark.parametrize(
    ("verb", "body"),
    [
        ("upgrade", {"pool": "tpu-a-1", "for": 7200.0}),
        ("repair", {"pool": "tpu-a-1", "for": 7200.0}),
        ("preempt", {"pool": "tpu-a-1", "back": 7200.0}),
    ],
)
def test_hosts_are_away_for_as_long_as_is_asked(verb: str, body: dict[str, object]) -> None:
    assert trouble.on_hosts(verb, "tpu-a-1", WHERE, 7200.0).body == body
    assert trouble.on_hosts(verb, "tpu-a-1", WHERE).body == {"pool": "tpu-a-1"}


@pytest.mark.parametrize(
    "order",
    [
        lambda: trouble.on_hosts("maintain", "tpu-a-1", ON_COMPUTE),
        lambda: trouble.on_hosts("upgrade", "tpu-a-1", ON_COMPUTE),
        lambda: trouble.on_hosts("preempt", "tpu-a-1", ON_COMPUTE, 60.0),
        lambda: trouble.api_errors(asked(share=0.1, of="gke", lasting=60.0), ON_COMPUTE),
    ],
    ids=["hosts", "upgrades", "times", "calls"],
)
def test_what_compute_engine_does_not_do_is_said(order: Callable[[], Press]) -> None:
    with pytest.raises(trouble.NotSimulated, match="Compute Engine"):
        order()


@pytest.mark.parametrize(
    ("lasts", "told"),
    [
        ({"until": None, "times": None}, "for now on"),
        ({"until": 160.0, "times": None}, "for another 60 s"),
        ({"until": None, "times": 2}, "for the next 2"),
    ],
)
def test_a_fault_of_compute_engine_is_told_with_how_long_it_lasts(lasts: dict[str, Any], told: str) -> None:
    fault = {"kind": "stockout", "method": "*", "names": "tpu-.*", "zone": None, **lasts}
    assert trouble.in_words(fault, 100.0) == f"stockout: * of pools tpu-.* in every zone, {told}"
