"""The keys of hosts: told in each report, and changed by the relay on hosts that it closed before."""

import pytest

from relay.hosts.closing import CLOSED
from relay.objects import Kind
from tests.relay.closing import SLICE, Site, closed_site, leader, question
from tests.relay.objects import node
from tests.relay.watched import Watched, nodes, reports
from tpu_slices.domain.model.hosts import MOST_KEYS, HostKey
from tpu_slices.domain.planning.keys import KEY_LABEL
from tpu_slices.domain.records.hosts import Hosts, digest_of

OLD, NEW = "u-1.j0", "u-2.j0"
OPEN = (False, None)


def keys(site: Site) -> dict[str, str]:
    """Return the key of each node, by its number."""
    labels = {name: made["metadata"]["labels"] for name, made in site.nodes.items()}
    return {name.removeprefix(f"{SLICE}-1-"): each.get(KEY_LABEL, "") for name, each in labels.items()}


def opens(site: Site, *, number: int = 2, key: str = NEW) -> None:
    """Ask for open hosts with a key."""
    site.watched.queue.ask(question(close=False, number=number, key=key), site.watched.now)


def settled(site: Site) -> None:
    """Let everything be patched that is needed, with the time that pods under way have to arrive."""
    for _ in range(3):
        site.patch()
        site.watched.pass_time(5)
        site.watched.due_facts()


def test_a_report_says_how_many_hosts_carry_which_key_and_it_is_compared(watched: Watched) -> None:
    watched.see(*nodes(3), node(3, labels={KEY_LABEL: OLD}))
    (report,) = reports(watched.due_facts())
    assert report.keys == (HostKey("", 3), HostKey(OLD, 1))
    known = Hosts(usable=4, joined=4, keys=report.keys)
    assert digest_of(SLICE, 1, known) != digest_of(SLICE, 1, Hosts(usable=4, joined=4, keys=(HostKey(OLD, 4),)))


def test_of_many_keys_the_most_frequent_are_told(watched: Watched) -> None:
    watched.see(*(node(number, labels={KEY_LABEL: f"u.j{number // 2}"}) for number in range(2 * MOST_KEYS)))
    watched.see(*(node(number, labels={KEY_LABEL: f"v.j{number}"}) for number in range(20, 60)))
    (report,) = reports(watched.due_facts())
    assert report.keys == tuple(HostKey(f"u.j{number}", 2) for number in range(MOST_KEYS))


def test_a_key_that_changes_is_told_at_once(watched: Watched) -> None:
    watched.see(*nodes(4))
    watched.due_facts()
    watched.see(node(2, labels={KEY_LABEL: OLD}))
    (report,) = reports(watched.due_facts())
    assert report.keys == (HostKey("", 3), HostKey(OLD, 1))


def test_closed_hosts_get_the_key_and_are_opened_in_one_patch() -> None:
    site = closed_site()
    opens(site)
    assert (len(site.patch()), keys(site), site.ours()) == (4, dict.fromkeys("0123", NEW), dict.fromkeys("0123", OPEN))
    (fact,) = site.reports()
    assert (fact.usable, fact.keys, fact.answers) == (4, (HostKey(NEW, 4),), 2)
    assert (site.needed(), site.after(300)) == ([], [])


def test_an_open_host_is_closed_until_no_pod_is_under_way_before_it_gets_the_key(site: Site) -> None:
    opens(site, number=1)
    assert len(site.patch()) == 4
    assert site.ours() == dict.fromkeys("0123", (True, "1"))
    site.reports()
    site.watched.pass_time(4)
    assert site.needed() == []
    site.watched.pass_time(1)
    assert len(site.patch()) == 4
    assert (keys(site), site.ours()) == (dict.fromkeys("0123", NEW), dict.fromkeys("0123", OPEN))
    assert [fact.answers for fact in site.reports()] == [1]


def test_pods_on_the_hosts_stay_while_these_get_the_key(site: Site) -> None:
    site.watched.see(leader())
    site.watched.due_facts()
    opens(site, number=1)
    settled(site)
    assert (keys(site), site.ours()) == (dict.fromkeys("0123", NEW), dict.fromkeys("0123", OPEN))


def test_only_hosts_with_another_key_are_closed(site: Site) -> None:
    site.join(*range(3), labels={KEY_LABEL: NEW})
    opens(site, number=1)
    assert site.patch() == [f"{SLICE}-1-3"]


def test_a_host_that_comes_back_with_the_key_of_its_pool_gets_that_of_the_latest_question() -> None:
    site = closed_site()
    opens(site)
    settled(site)
    site.leave(2)
    site.join(*[2], labels={KEY_LABEL: OLD})
    settled(site)
    assert (keys(site), site.ours()) == (dict.fromkeys("0123", NEW), dict.fromkeys("0123", OPEN))


def test_what_a_relay_closed_is_left_to_the_next_question_if_it_restarts_before_it_set_the_key(site: Site) -> None:
    opens(site, number=1)
    site.patch()
    site.restart()
    settled(site)
    assert keys(site) == dict.fromkeys("0123", "")
    opens(site)
    settled(site)
    assert (keys(site), site.ours()) == (dict.fromkeys("0123", NEW), dict.fromkeys("0123", OPEN))


def test_a_host_that_somebody_else_cordoned_is_neither_keyed_nor_opened() -> None:
    site = Site()
    site.cordon(3)
    opens(site, number=1)
    settled(site)
    assert (keys(site)["3"], site.ours()["3"]) == ("", (True, None))
    assert keys(site)["0"] == NEW
    assert [fact.answers for fact in site.after(60)] == [1]


def test_a_host_that_somebody_opened_is_not_closed_again_for_its_key(site: Site) -> None:
    opens(site, number=1)
    site.patch()
    site.cordon(3, cordoned=False)
    settled(site)
    assert (keys(site)["3"], site.ours()["3"][0]) == ("", False)
    assert keys(site)["0"] == NEW
    opens(site)
    settled(site)
    assert keys(site)["3"] == NEW


def test_hosts_that_are_to_be_closed_after_all_get_no_key(site: Site) -> None:
    opens(site, number=1)
    site.patch()
    site.watched.pass_time(5)
    site.watched.queue.ask(question(number=2), site.watched.now)
    settled(site)
    assert keys(site) == dict.fromkeys("0123", "")
    assert {closed for closed, _ in site.ours().values()} == {True}


@pytest.mark.parametrize("key", ["", OLD])
def test_hosts_that_have_their_key_are_opened_as_they_are(key: str) -> None:
    site = Site()
    site.join(*range(4), labels={KEY_LABEL: OLD})
    site.ask()
    site.patch()
    site.after(5)
    patches = [dict(each.patch["metadata"]) for each in site.watched.patches()]
    assert patches == []
    opens(site, key=key)
    assert all("labels" not in each.patch["metadata"] for each in site.watched.patches())
    site.patch()
    assert (keys(site), site.ours()) == (dict.fromkeys("0123", OLD), dict.fromkeys("0123", OPEN))


def test_the_mark_of_a_closed_host_is_what_lets_the_relay_change_its_key(site: Site) -> None:
    """The API server refuses a key on a host that is not closed for the relay: restrictions.yaml."""
    opens(site, number=1)
    first = site.watched.patches()
    assert all(each.patch["metadata"]["annotations"] == {CLOSED: "1"} for each in first)
    assert all("labels" not in each.patch["metadata"] for each in first)
    site.apply(first)
    site.watched.pass_time(5)
    assert {each.patch["metadata"]["labels"][KEY_LABEL] for each in site.watched.patches()} == {NEW}
    assert site.watched.queue.cache.identities(Kind.HOSTS) == set(site.nodes)
