"""Hosts that may come to other namespaces: told with the one that they are for, and given to the next in one patch."""

from __future__ import annotations

import pytest

from tests.relay.closing import SLICE, Site, question
from tests.relay.fact_queue.test_host_keys import OPEN, opens, settled
from tests.relay.objects import node
from tests.relay.watched import Watched, reports
from tpu_slices.domain.model.hosts import HostKey
from tpu_slices.domain.planning.keys import KEY_LABEL
from tpu_slices.domain.planning.pool_labels import ANY_NAMESPACE_LABEL, PARENT_NAMESPACE_LABEL

NOBODYS = {ANY_NAMESPACE_LABEL: "true", KEY_LABEL: f"{SLICE}-1"}
OLD = {**NOBODYS, KEY_LABEL: "u-1.j0", PARENT_NAMESPACE_LABEL: "research"}


def hosts_with(labels: dict[str, str]) -> Site:
    site = Site()
    site.join(0, 1, 2, 3, labels=labels)
    site.watched.due_facts()
    return site


def said(site: Site) -> set[tuple[str | None, str | None]]:
    """Return for which namespace each host is, and its key."""
    labels = [made["metadata"]["labels"] for made in site.nodes.values()]
    return {(each.get(PARENT_NAMESPACE_LABEL), each.get(KEY_LABEL)) for each in labels}


def test_their_namespace_is_told_with_their_key(watched: Watched) -> None:
    watched.see(*(node(number, labels=OLD) for number in range(3)), node(3, labels=NOBODYS))
    (report,) = reports(watched.due_facts())
    assert report.keys == (HostKey("research/u-1.j0", 3), HostKey(f"/{SLICE}-1", 1))


@pytest.mark.parametrize("labels", [OLD, NOBODYS], ids=["another namespace's", "made anew"])
def test_they_are_closed_and_get_namespace_and_key_as_they_are_opened(labels: dict[str, str]) -> None:
    site = hosts_with(labels)
    opens(site, number=1, key="vision/u-2.j0")
    assert len(site.patch()) == 4
    assert (said(site), {closed for closed, _ in site.ours().values()}) == (
        {(labels.get(PARENT_NAMESPACE_LABEL), labels[KEY_LABEL])},
        {True},
    )
    settled(site)
    assert (said(site), site.ours()) == ({("vision", "u-2.j0")}, dict.fromkeys("0123", OPEN))


def test_the_key_of_another_namespace_is_another_key() -> None:
    site = hosts_with(OLD)
    opens(site, number=1, key="vision/u-1.j0")
    settled(site)
    assert said(site) == {("vision", "u-1.j0")}


def test_hosts_that_are_made_anew_meanwhile_get_both() -> None:
    site = hosts_with(OLD)
    opens(site, number=1, key="vision/u-2.j0")
    settled(site)
    site.join(1, 2, labels=NOBODYS)
    assert (None, f"{SLICE}-1") in said(site)
    settled(site)
    assert (said(site), site.ours()) == ({("vision", "u-2.j0")}, dict.fromkeys("0123", OPEN))


def test_a_question_of_functions_that_know_of_no_namespaces_changes_none() -> None:
    site = hosts_with(OLD)
    site.watched.queue.ask(question(close=False, number=1, key="u-1.j0"), site.watched.now)
    settled(site)
    assert (said(site), site.ours()) == ({("research", "u-1.j0")}, dict.fromkeys("0123", OPEN))
    opens(site, number=2, key="u-2.j0")
    settled(site)
    assert said(site) == {("research", "u-2.j0")}
