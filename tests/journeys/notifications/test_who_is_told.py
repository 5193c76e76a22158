"""Nothing of a workload is told outside the cluster where its namespace, or its own annotation, does not have it so."""

from __future__ import annotations

import pytest

from tests.builders import CLUSTER, NOW, a_jobset, a_record, an_owner, settings
from tests.journeys.notifications.stories import SLACK, annotates, notifying, occasions, waiting
from tests.journeys.serving import serving
from tests.world import World
from tpu_slices.domain.model.notifications import NotificationRule, chosen, unknown_targets
from tpu_slices.domain.model.questions import ListQuestion
from tpu_slices.domain.model.reasons import Phase, Reason, ReportReason
from tpu_slices.domain.records.workloads import Report
from tpu_slices.domain.reporting.notifications import notifications
from tpu_slices.flows.failures import Failures
from tpu_slices.flows.report import MOST_TROUBLES, report_due
from tpu_slices.ports.errors import Temporary
from tpu_slices_simulator.fuse import Fuse

PAGER = NotificationRule(only_if_named=True)
RULES = {"slack": SLACK, "pager": PAGER}


@pytest.mark.parametrize(
    ("annotation", "targets", "unknown"),
    [
        ("", {"slack"}, ()),
        (" , ", {"slack"}, ()),
        ("none", set(), ()),
        ("pager", {"pager"}, ()),
        ("slack, pager,slack", {"slack", "pager"}, ()),
        ("pager,others", {"pager"}, ("others",)),
        ("others", set(), ("others",)),
        ("none,slack", {"slack"}, ()),
    ],
)
def test_a_workload_chooses_among_the_targets_of_its_namespace(
    annotation: str, targets: set[str], unknown: tuple[str, ...]
) -> None:
    found = chosen(RULES, annotation)
    assert ({*found.rules}, found.unknown) == (targets, unknown)


def test_what_an_annotation_names_that_is_no_target_is_said_with_the_remedy() -> None:
    assert unknown_targets(RULES, "pager") == unknown_targets({}, "none") == ""
    assert unknown_targets(RULES, "others").endswith(
        'names "others". This namespace has no such target, and none is notified: name slack or pager.'
    )
    assert "ask who operates the cluster" in unknown_targets({}, "slack")


def test_without_the_setting_nothing_is_published_or_recorded() -> None:
    world = World()
    jobset = waiting(world, annotation="slack")
    world.settle(minutes=60)
    world.ends(jobset)
    world.settle(minutes=15)
    assert occasions(world) == []
    assert all(not each.notified for each in world.store.jobset_records(CLUSTER))


def test_a_namespace_has_nothing_told_to_the_targets_of_another() -> None:
    world = notifying()
    waiting(world, "gemma", annotation="slack", namespace="vision")
    world.settle(minutes=60)
    assert occasions(world) == []
    assert 'names "slack". This namespace has no such target' in world.publisher.reports[-1][1].report.message


def test_a_report_says_of_a_name_that_is_no_target_and_stops_once_it_is_corrected() -> None:
    world = notifying()
    _, jobset = serving(world=world)
    annotates(world, jobset, "slak")
    world.settle(minutes=2)
    assert world.publisher.reports[-1][1].report.message.endswith("none is notified: name slack.")
    annotates(world, jobset, "slack")
    world.settle(minutes=2)
    assert "slak" not in world.publisher.reports[-1][1].report.message


def test_a_text_has_no_name_of_a_workload_of_another_namespace() -> None:
    message = (
        "0 of 1 slices ready; llama-0 since 12:00 UTC: vision/secret-2.model ran on its hosts, and research/gemma: "
        "select cloud.google.com/gke-tpu-topology (projects/p/reservations/r), see https://example.com/a/b."
    )
    made = Report(reason=ReportReason.WAITING, message=message, requested=1, ready=0, since=NOW - SLACK.waiting_after)
    workload = a_jobset(owner=an_owner("llama"))
    of_research = settings(notifications={"research": {"slack": SLACK}})
    [sent] = notifications(workload, made, [a_record()], of_research, NOW).to_send
    assert "vision" not in sent.text + sent.title
    assert "a workload of another namespace ran on its hosts, and research/gemma" in sent.text
    assert "select cloud.google.com/gke-tpu-topology (projects/p/reservations/r), see https://example.com" in sent.text


@pytest.mark.parametrize(
    "words",
    [
        "0/8 nodes are available: 8 node(s) didn't match Pod's node affinity/selector",
        'Back-off pulling image "myorg/train:v1"',
        "3/4 hosts are ready",
    ],
)
def test_the_words_of_schedulers_and_kubelets_are_told_as_they_are(words: str) -> None:
    made = Report(reason=ReportReason.WAITING, message=words, requested=1, ready=0, since=NOW - SLACK.waiting_after)
    of_research = settings(notifications={"research": {"slack": SLACK}})
    [sent] = notifications(a_jobset(owner=an_owner("llama")), made, [a_record()], of_research, NOW).to_send
    assert words in sent.text


@pytest.mark.parametrize(
    "users", ["used by vision/other, which cannot have them", "vision/a, vision/other runs on them"]
)
def test_whoever_is_on_the_hosts_of_a_slice_is_named_in_no_such_text(users: str) -> None:
    made = Report(reason=ReportReason.WAITING, message=users, requested=1, ready=0, since=NOW - SLACK.waiting_after)
    of_research = settings(notifications={"research": {"slack": SLACK}})
    [sent] = notifications(a_jobset(owner=an_owner("llama")), made, [a_record()], of_research, NOW).to_send
    assert "vision" not in sent.text


@pytest.mark.parametrize("reason", [each for each in Reason if each.phase is Phase.PROVISIONING])
def test_a_text_of_an_interruption_has_no_such_name_either(reason: Reason) -> None:
    lost = a_record().transitioned(NOW, Reason.READY, "").transitioned(NOW, reason, "vision/other is on them")
    made = Report(reason=ReportReason.WAITING, message="", requested=1, ready=0, since=NOW)
    of_research = settings(notifications={"research": {"slack": SLACK}})
    for sent in notifications(a_jobset(), made, [lost], of_research, NOW).to_send:
        assert "vision" not in sent.text


def test_where_there_is_no_topic_for_notifications_everything_else_is_reported_and_the_sweep_says_so() -> None:
    """As when the settings come before the build."""
    world = notifying()

    def missing(*_: object) -> None:
        raise Temporary("notifications-demo: not published: 404")

    world.publisher.notify = missing  # type: ignore[method-assign, assignment]
    for number in range(MOST_TROUBLES + 2):
        waiting(world, f"llama-{number}")
    world.settle(minutes=25)
    failures = Failures()
    world.publisher.reports.clear()
    world.settle(minutes=15)
    report_due([CLUSTER], world.deps, failures)
    assert {str(each) for each in failures.found} == {
        f"demo: no notification of research/llama-{number}: notifications-demo: not published: 404"
        for number in range(MOST_TROUBLES + 2)
    }
    assert len({update.owner.name for _, update in world.publisher.reports}) == MOST_TROUBLES + 2


def test_relay_and_records_agree_on_a_workload_with_an_annotation() -> None:
    world = notifying()
    _, jobset = serving(world=world)
    annotates(world, jobset, "slack")
    world.settle(minutes=10)
    asked = len(world.publisher.questions)
    world.settle(minutes=60)
    assert [each for _, each in world.publisher.questions[asked:] if isinstance(each, ListQuestion)] == []


# a process that dies, and a publisher that fails


def test_what_could_not_be_published_is_published_by_the_next_sweep() -> None:
    world = notifying()
    waiting(world)
    world.settle(minutes=19)
    publish = world.publisher.notify

    def fails(*_: object) -> None:
        world.publisher.notify = publish  # type: ignore[method-assign]
        raise Temporary("Pub/Sub is not there")

    world.publisher.notify = fails  # type: ignore[method-assign, assignment]
    world.settle(minutes=5)
    assert len(world.publisher.notifications) == 1
    world.settle(minutes=60)
    assert len(world.publisher.notifications) == 1


def waits_for_long(after: int | None = None) -> World:
    """Return a world in which a JobSet waits until its target is notified, and for a while more.

    `after`: the process dies after so many side effects from when the wait is nearly long enough.
    """
    world = World(Fuse(), settings(notifications={"research": {"slack": SLACK}}))
    waiting(world)
    world.settle(minutes=19)
    world.fuse.burnt, world.fuse.blows_after = 0, after
    world.settle(minutes=12)
    return world


def test_a_process_that_dies_anywhere_loses_no_notification_and_makes_no_second_one() -> None:
    sent = [waits_for_long(last) for last in range(1, waits_for_long().fuse.burnt + 1)]
    assert {len({each.id for each in world.publisher.notifications}) for world in sent} == {1}
    twice = [world for world in sent if len(world.publisher.notifications) > 1]
    assert len(twice) == 1, "only where it died between the publication and the note of it, and with the same id"
