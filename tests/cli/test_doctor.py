"""`slices doctor` checks every part by one round trip, and says which one fails."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.builders import CLUSTER, NOW, settings
from tests.cli.stage import Stage, serving
from tpu_slices.domain.model.capacity import Place, Spare
from tpu_slices.domain.model.clusters import Policy
from tpu_slices.domain.model.facts import Echo, Pinning
from tpu_slices.domain.model.gangs import Gangs, Gating
from tpu_slices.domain.model.slices import CapacityKind, ClusterId
from tpu_slices.domain.records.heartbeats import RelayHeartbeat, RoundTrip
from tpu_slices.domain.reporting.reason_texts import PODS_REFUSED
from tpu_slices.flows.receive import receive
from tpu_slices.flows.round_trip import ask, echo_reconciled
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.store import SliceStore
from tpu_slices.wire.cluster_settings import settings_key
from tpu_slices_cli.examination import CLOCKS_AGREE, Seen, examine, next_steps, queries, records
from tpu_slices_simulator.fakes.store import FakeStore

NOT_SILENT = "it has ended, cannot pull questions-demo, or is of an earlier release."
WHY = "Ages and time limits are computed from them."
STEP = timedelta(seconds=20)
ANSWERED = "  ok      The relay answered, and receive recorded it, after "
RECONCILED = "  ok      Reconcile recorded it after "
THERE = "  ok      Its topics are there, and a subscription to each."
SWEPT = "  ok      The sweep ran, and listed the cluster's slices in Google Cloud."
UPDATED = "  ok      Updates come to the relay, which makes Events of them."
CLOCKS = "  ok      All clocks agree within 10 s."
HELD = "  ok      Workloads that are annotated as gangs are held until all of their slices stand."
PINNED = "  ok      Pods are pinned to their slices, by the admission policy tpu-slice-provisioner."


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Return a world that goes on by a minute at each pause of the command."""
    made = Stage()
    serving(made)

    def goes_on(seconds: float) -> None:
        assert seconds == 2
        made.world.settle(minutes=1)

    monkeypatch.setattr("tpu_slices_cli.doctor.sleep", goes_on)
    return made


def lines(stage: Stage, code: int) -> list[str]:
    """Return what is said of the cluster."""
    return told(stage, code)[0]


def told(stage: Stage, code: int) -> tuple[list[str], list[str]]:
    """Return what is said of the cluster, and what is to be done next."""
    return _told(stage, code)[:2]


def of_alerts(stage: Stage, code: int) -> list[str]:
    """Return what is said of alerts."""
    return _told(stage, code)[2]


def _told(stage: Stage, code: int) -> tuple[list[str], list[str], list[str]]:
    result = stage.slices("doctor")
    assert result.exit_code == code, result.output
    said = result.stdout.splitlines()
    assert said[0] == "records"
    alerts, next_ = said.index("alerts"), said.index("Next:")
    there, *of_cluster = said[said.index(f"cluster {CLUSTER}") + 1 : alerts]
    assert there == THERE
    return of_cluster, said[next_ + 1 :], said[alerts + 1 : next_]


def test_all_is_well_with_what_works(stage: Stage) -> None:
    relay, reconciled, updates, swept, clocks, pinned, held = lines(stage, 0)
    assert relay.startswith(ANSWERED)
    assert reconciled.startswith(RECONCILED)
    assert (updates, swept, clocks, pinned, held) == (UPDATED, SWEPT, CLOCKS, PINNED, HELD)


def test_that_no_update_comes_to_a_relay_that_answers_is_named(stage: Stage) -> None:
    stage.world.passes_updates = False
    relay, reconciled, updates, _, describe, *_ = lines(stage, 1)
    assert relay.startswith(ANSWERED)
    assert reconciled.startswith(RECONCILED)
    assert updates.startswith("  FAILED  No update came to the relay, so there are no Events")
    assert describe.strip() == f"gcloud pubsub subscriptions describe relay-{CLUSTER} --project demo-project"


@pytest.mark.parametrize(
    ("pinning", "said"),
    [
        (Pinning.WEBHOOK, "Pods are pinned to their slices, by the webhook"),
        (Pinning.NOTHING, "Pods are not pinned: neither the admission policy"),
        (None, "is not known"),
    ],
)
def test_by_what_pods_are_pinned_is_said_and_that_nothing_does_is_no_failure(
    stage: Stage, pinning: Pinning | None, said: str
) -> None:
    stage.world.cluster.pinning = pinning
    stage.world.settle(minutes=2)
    assert said in lines(stage, 0)[-2]


@pytest.mark.parametrize(
    ("gangs", "gating", "said"),
    [
        (Gangs.MULTISLICE, Gating.MULTISLICE, "ok      JobSets of several slices are gangs"),
        (Gangs.NONE, Gating.PODS, "ok      Pods of gangs are held only where their templates have"),
        (Gangs.NONE, None, "ok      Whether the pods of gangs are held is not known"),
        (Gangs.NONE, Gating.MULTISLICE, "FAILED  The setting `gangs` is none"),
        (Gangs.MULTISLICE, Gating.ANNOTATED, "FAILED  The setting `gangs` is multislice"),
        (Gangs.MULTISLICE, Gating.PODS, "FAILED  The setting `gangs` is multislice"),
        (Gangs.MULTISLICE, Gating.NOTHING, "FAILED  The setting `gangs` is multislice"),
    ],
)
def test_whether_gangs_are_held_as_the_settings_say_is_said(
    stage: Stage, gangs: Gangs, gating: Gating | None, said: str
) -> None:
    stage.world.store.put_settings(settings(gangs=gangs))
    stage.world.cluster.gating = gating
    stage.world.settle(minutes=2)
    told = [line for line in lines(stage, int("FAILED" in said)) if said in line]
    assert len(told) == 1
    assert ("Submit the build" in told[0]) is ("FAILED" in said)


def test_that_no_pod_with_chips_can_be_created_is_a_failure_and_says_what_to_look_at(stage: Stage) -> None:
    stage.world.cluster.pinning = Pinning.REFUSED
    stage.world.settle(minutes=2)
    *_, said, pods, logs, configuration = lines(stage, 1)
    assert said == f"  FAILED  {PODS_REFUSED}"
    assert "app.kubernetes.io/name=webhook" in pods
    assert "deployment/webhook" in logs
    assert "mutatingwebhookconfiguration" in configuration


def test_that_lines_are_counted_of_which_alerts_come_is_said(stage: Stage) -> None:
    assert of_alerts(stage, 0) == [
        "  ok      The sweep's lines are counted, so that alerts on lines of the functions can come."
    ]


def test_metrics_that_match_no_line_are_a_failure_with_the_command_that_shows_the_lines(stage: Stage) -> None:
    stage.lines.match = False
    failed, command = of_alerts(stage, 1)
    assert failed.startswith("  FAILED  No line sweep.completed was counted in 10 minutes")
    assert command.strip().startswith("gcloud logging read 'resource.labels.service_name=\"tpu-slice-sweep\"'")


def test_whoever_may_not_read_the_log_learns_that_it_is_not_known(stage: Stage) -> None:
    stage.lines.trouble = Permanent("Cloud Logging: 403 no")
    assert of_alerts(stage, 0) == ["  ok      Whether alerts on lines can come is not known: Cloud Logging: 403 no"]


def test_where_all_is_well_nothing_has_to_be_done(stage: Stage) -> None:
    assert told(stage, 0)[1][0].startswith("  1. Nothing has to be done. `slices list`")


def test_where_all_is_well_and_nothing_was_asked_for_a_first_slice_is() -> None:
    (step,) = next_steps({"records": [records(1, {})]}, slices=0)
    assert [command.partition(" examples")[0] for command in step.commands] == [
        "slices plan -f",
        "kubectl apply -f",
        "slices list --watch",
    ]


def test_what_mends_a_failure_is_said_once_more_in_order_and_nothing_of_what_follows_from_it(stage: Stage) -> None:
    stage.world.relay_is_dead = True
    said, next_ = told(stage, 1)
    relay, receive = (line.strip() for line in said[1:3])
    assert [line.strip() for line in next_[:3]] == ["1. cluster demo:", relay, receive]
    assert next_[3:] == ["  2. `slices doctor` again: what comes later may have failed for what came before."]


def test_nothing_is_created_deleted_or_asked_of_gke_but_its_list(stage: Stage) -> None:
    before = (stage.world.pools, [*stage.world.store.every_slice(CLUSTER)])
    lines(stage, 0)
    after = (stage.world.pools, [*stage.world.store.every_slice(CLUSTER)])
    assert [stored.value.phase for stored in after[1]] == [stored.value.phase for stored in before[1]]
    assert after[0] == before[0]


def test_a_second_time_the_first_answer_does_not_count(stage: Stage) -> None:
    lines(stage, 0)
    stage.world.relay_is_dead = True
    assert lines(stage, 1)[0].startswith("  FAILED  ")


def test_a_silent_relay_is_named_with_the_command_that_shows_its_log(stage: Stage) -> None:
    stage.world.relay_is_dead = True
    said = lines(stage, 1)
    assert said[0].startswith("  FAILED  ")
    assert "kubectl logs deployment/relay --namespace tpu-slice-provisioner --tail 50" in said[1]
    assert 'service_name="tpu-slice-receive"' in said[2]
    assert said[3] == "  FAILED  Reconcile was not asked: the relay's answer comes first."


def test_a_sweep_that_does_not_run_is_named(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage.world, "sweeps", lambda: None)
    said = lines(stage, 1)
    assert said[3].startswith("  FAILED  The sweep, which runs each minute, has not compared")
    assert 'service_name="tpu-slice-sweep"' in said[4]
    assert said[5] == CLOCKS
    assert said[-1] == "  ok      The job ticks-demo of Cloud Scheduler is enabled."


@pytest.mark.parametrize(
    ("state", "problem", "remedy"),
    [
        (None, "There is no job ticks-demo in Cloud Scheduler.", "Write infra/clusters/PROJECT/demo.yaml"),
        ("PAUSED", "The job ticks-demo of Cloud Scheduler is PAUSED.", "gcloud scheduler jobs resume ticks-demo "),
    ],
)
def test_a_schedule_that_is_missing_or_paused_is_named(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, state: str | None, problem: str, remedy: str
) -> None:
    monkeypatch.setattr(stage.world, "sweeps", lambda: None)
    stage.deployed.state = state
    *_, said, do = lines(stage, 1)
    assert said == f"  FAILED  {problem}"
    assert do.strip().startswith(remedy)


MISSING = ("topic requests-demo", "subscription reconcile-requests-demo")


def test_topics_that_are_missing_are_named_and_nothing_is_asked_by_them(stage: Stage) -> None:
    stage.deployed.missed[CLUSTER] = MISSING
    asked = len(stage.world.publisher.questions)
    result = stage.slices("doctor")
    assert result.exit_code == 1
    said = result.stdout.splitlines()
    problem, remedy = said[said.index(f"cluster {CLUSTER}") + 1 :][:2]
    assert problem.startswith(f"  FAILED  Nobody serves it. Missing: {', '.join(MISSING)}.")
    assert remedy.strip().startswith("Write infra/clusters/PROJECT/demo.yaml, if it is not there, and submit the build")
    assert len(stage.world.publisher.questions) == asked


def test_a_cluster_whose_topics_are_missing_keeps_no_other_from_being_asked(stage: Stage) -> None:
    stage.world.store.put_settings(settings(cluster=ClusterId("ahead"), path=settings().path + "-ahead"))
    stage.deployed.missed[ClusterId("ahead")] = MISSING
    said = lines(stage, 1)
    assert said[0].startswith(ANSWERED)


def test_whoever_may_not_look_at_topics_learns_that_it_is_not_known(stage: Stage) -> None:
    stage.deployed.trouble = Permanent("Pub/Sub: 403 no")
    said = stage.output_of("doctor").splitlines()
    unknown, relay = said[said.index(f"cluster {CLUSTER}") + 1 :][:2]
    assert unknown == "  ok      Whether its topics and subscriptions are there is not known: Pub/Sub: 403 no"
    assert relay.startswith(ANSWERED)


def test_queries_that_fail_are_listed_and_the_rest_is_checked(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> int:
        raise Temporary("The query requires an index.")

    monkeypatch.setattr(FakeStore, "digests", fails)
    result = stage.slices("doctor", "--patience", "0")
    assert result.exit_code == 1
    assert "1 of 47 queries failed." in result.stdout
    assert "digests: The query requires an index." in result.stdout
    assert f"cluster {CLUSTER}" in result.stdout


def test_a_cluster_without_settings_is_named_and_not_asked(stage: Stage) -> None:
    stage.world.store.remove_document(settings_key(CLUSTER))
    result = stage.slices("doctor", "--cluster", CLUSTER)
    assert result.exit_code == 1
    assert f"There are no settings of {CLUSTER}: its relay's facts are rejected." in result.stdout
    assert "Reconcile" not in result.stdout


def test_without_a_cluster_only_the_records_are_checked() -> None:
    stage = Stage()
    stage.world.store.remove_document(settings_key(CLUSTER))
    said = stage.output_of("doctor")
    assert "No cluster is configured" in said
    assert "  1. Write infra/clusters/PROJECT/CLUSTER.yaml, and submit the build" in said


def members(protocol: type) -> Iterator[str]:
    yield from (name for name, _ in inspect.getmembers(protocol, inspect.isfunction) if not name.startswith("_"))


def test_every_query_is_made() -> None:
    """Reading by name needs no index, and is made by the round trip itself."""
    by_name = {
        "together",
        "settings",
        "workloads",
        "slices",
        "limiter",
        "budget",
        "brake",
        "heartbeat",
        "commit",
        "reject",
    }
    made = {name.partition(" ")[0] for name in queries(FakeStore(), CLUSTER, NOW)}
    assert made == {*members(SliceStore)} - by_name


HEARD = RelayHeartbeat(cluster=CLUSTER, received_at=NOW, uninterrupted_since=NOW)
TRIP = RoundTrip(asked_at=NOW, answered_at=NOW + STEP, received_at=NOW + STEP, reconciled_at=NOW + STEP)
WELL = replace(HEARD, round_trip=TRIP, updates_tried_at=NOW, next_inventory_check_at=NOW + STEP)


def failures(heartbeat: RelayHeartbeat) -> list[str]:
    seen = Seen(project="shop", cluster=CLUSTER, asked_at=NOW, now=NOW + 2 * STEP, heartbeat=heartbeat)
    return [finding.message for finding in examine(seen) if not finding.is_well]


@pytest.mark.parametrize(
    ("heartbeat", "messages"),
    [
        (WELL, []),
        (replace(WELL, round_trip=replace(TRIP, reconciled_at=None)), ["Reconcile has not recorded the answer."]),
        (
            replace(WELL, round_trip=replace(TRIP, asked_at=NOW - STEP)),
            [
                f"The relay, heard 40 s ago, does not answer: {NOT_SILENT}",
                "Reconcile was not asked: the relay's answer comes first.",
            ],
        ),
        (
            replace(WELL, round_trip=None, received_at=None),
            ["The relay was never heard.", "Reconcile was not asked: the relay's answer comes first."],
        ),
        (
            replace(WELL, round_trip=replace(TRIP, answered_at=NOW - CLOCKS_AGREE - STEP)),
            [f"Clocks differ from this computer's: that of the relay by 30 s. {WHY}"],
        ),
        (
            replace(WELL, round_trip=replace(TRIP, reconciled_at=NOW + 10 * STEP)),
            [f"Clocks differ from this computer's: that of reconcile by 160 s. {WHY}"],
        ),
    ],
    ids=["all", "no reconcile", "an earlier answer", "never heard", "a slow clock", "a fast clock"],
)
def test_the_part_that_fails_is_named(heartbeat: RelayHeartbeat, messages: list[str]) -> None:
    assert failures(heartbeat) == messages


def test_an_answer_that_is_late_does_not_count_for_a_later_question() -> None:
    world = Stage().world
    first = ask(CLUSTER, world.deps)
    world.clock.advance(STEP)
    receive(Echo(asked_at=first, at=NOW), CLUSTER, world.deps)
    second = ask(CLUSTER, world.deps)
    receive(Echo(asked_at=second, at=NOW), CLUSTER, world.deps)
    echo_reconciled(first, CLUSTER, world.deps)
    stored = world.store.heartbeat(CLUSTER)
    assert stored is not None
    trip = stored.value.round_trip
    assert trip is not None
    assert (trip.asked_at, trip.reconciled_at) == (second, None)


def test_a_heartbeat_keeps_the_round_trip(stage: Stage) -> None:
    lines(stage, 0)
    stage.world.settle(minutes=5)
    stored = stage.world.store.heartbeat(CLUSTER)
    assert stored is not None
    assert stored.value.round_trip is not None


def test_spares_that_do_not_stand_are_told_with_the_reason_and_are_no_failure(stage: Stage) -> None:
    spares = Spare(accelerator="tpu-v6e-slice", topology="4x4", place="list", count=2, namespaces=("research",))
    place = Place(capacity=CapacityKind.ON_DEMAND, zones=("us-central2-b",))
    policy = Policy(chips_per_cluster=32)
    stage.world.store.put_settings(settings(places={"list": place}, spares=(spares,), policy=policy))
    stage.world.settle(minutes=10)
    stand, waits = [line for line in lines(stage, 0) if "spare" in line]
    assert stand == "  ok      1 of 2 spares stand."
    why = "policy.chips_per_cluster: this slice has 16 chips, and the cluster holds 32 of 32; retried automatically."
    assert waits == f"  ok      A spare does not stand, research/spare-list-4x4: {why}"
