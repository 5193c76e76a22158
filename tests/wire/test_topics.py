from __future__ import annotations

import pytest

from infra.local import messaging
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.ports.errors import Permanent
from tpu_slices.wire.topics import Topic


@pytest.mark.parametrize("topic", Topic)
def test_the_cluster_is_part_of_the_topics_name(topic: Topic) -> None:
    for cluster in ("demo", f"my-{topic}-2", "all"):
        assert topic.cluster(topic.of(ClusterId(cluster))) == cluster


def test_a_topic_is_that_of_one_cluster_and_carries_one_thing() -> None:
    taken = [(topic, other) for topic in Topic for other in Topic if topic.of(ClusterId("a")).startswith(f"{other}-")]
    assert taken == [(topic, topic) for topic in Topic]


def test_no_topic_of_the_project_could_be_that_of_a_cluster() -> None:
    of_project = [name for name in messaging.read().topics if "{cluster}" not in name]
    assert [name for name in of_project for topic in Topic if name.startswith(f"{topic}-")] == []


def test_the_table_has_the_topics_of_each_cluster_and_no_others() -> None:
    of_cluster = [name for name in messaging.read().topics if "{cluster}" in name]
    assert sorted(of_cluster) == sorted(topic.of(ClusterId("{cluster}")) for topic in Topic)


def test_the_table_has_the_one_subscription_to_each() -> None:
    of_cluster = {row.topic: row.name for row in messaging.read().subscriptions if "{cluster}" in row.topic}
    cluster = ClusterId("{cluster}")
    assert of_cluster == {topic.of(cluster): topic.subscription(cluster) for topic in Topic}


def test_the_schedule_of_a_cluster_has_the_name_of_its_topic() -> None:
    of_cluster = {row.name: row.topic for row in messaging.read().schedules if "{cluster}" in row.topic}
    assert of_cluster == {"ticks-{cluster}": Topic.TICKS.of(ClusterId("{cluster}"))}


@pytest.mark.parametrize("name", ["prod.eu", "Prod", "-prod", "1prod", "p" * 64])
def test_a_cluster_whose_documents_could_be_anothers_is_an_error(name: str) -> None:
    with pytest.raises(Permanent, match="is not the ID of a cluster"):
        Topic.FACTS.cluster(f"facts-{name}")


@pytest.mark.parametrize("topic", ["requests-demo", "facts-", "facts", "old-facts-demo", "cloud-operations"])
def test_another_topic_is_an_error(topic: str) -> None:
    with pytest.raises(Permanent, match=f'topic: "{topic}" is not a topic for facts, facts-CLUSTER'):
        Topic.FACTS.cluster(topic)
