"""The table of topics and subscriptions, against what the functions take for granted of it."""

from datetime import timedelta

from infra.local.messaging import TABLE, parsed
from tpu_slices.flows.receive import DELIVERED_AGAIN


def test_a_fact_whose_receive_was_killed_comes_back_while_its_repetition_still_requests_the_slices() -> None:
    [facts] = (each for each in parsed(TABLE.read_text()).subscriptions if each.function == "receive")

    pause = timedelta(seconds=facts.ack_deadline_seconds + facts.maximum_backoff_seconds)

    assert 3 * pause <= DELIVERED_AGAIN  # two of these deliveries may be lost with their instances, too
