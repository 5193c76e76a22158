"""The publisher in memory: what Pub/Sub refuses is refused."""

from __future__ import annotations

from collections.abc import Callable, Collection
from collections.abc import Set as AbstractSet
from datetime import datetime
from functools import partial

from tpu_slices.domain.model.facts import HostsChanged
from tpu_slices.domain.model.joining import JoinToken
from tpu_slices.domain.model.notifications import Notification
from tpu_slices.domain.model.questions import AnyQuestion, EchoQuestion
from tpu_slices.domain.model.slices import ClaimId, ClusterId, SliceId, WorkloadUid
from tpu_slices.ports.errors import Temporary
from tpu_slices.ports.publisher import AnyMirror, NodeGroupUpdate, SliceUpdate, WorkloadUpdate
from tpu_slices.wire.messages import (
    encode_answer,
    encode_echo_request,
    encode_join_request,
    encode_mirror,
    encode_node_group,
    encode_notification,
    encode_question,
    encode_reconcile_request,
    encode_report,
    encode_update,
)
from tpu_slices_simulator.fakes.pubsub_rules import check


class FakePublisher:
    """Keeps everything that was published, in order; `fail_next` makes calls fail."""

    def __init__(self) -> None:
        self.requests: list[tuple[ClusterId, ClaimId | SliceId]] = []
        self.waiting: dict[ClaimId | SliceId, WorkloadUid | None] = {}
        """Whose pods wait for a slice, as said with the last request for it."""
        self.ended: set[ClaimId | SliceId] = set()
        """The slices of which requests say that an operation ended."""
        self.answers: list[tuple[ClusterId, SliceId, HostsChanged]] = []
        """Reconcile requests with an answer of the relay."""
        self.echoes: list[tuple[ClusterId, datetime]] = []
        self.joins: list[tuple[ClusterId, JoinToken]] = []
        self.updates: list[SliceUpdate] = []
        self.reports: list[tuple[ClusterId, WorkloadUpdate]] = []
        self.node_groups: list[tuple[ClusterId, NodeGroupUpdate]] = []
        self.mirror: list[AnyMirror] = []
        self.notifications: list[Notification] = []
        self.questions: list[tuple[ClusterId, AnyQuestion]] = []
        self.tries: list[tuple[ClusterId, EchoQuestion]] = []
        """Of the way that updates take, not yet delivered."""
        self.meanwhile: Callable[[], object] = lambda: None
        """Called while reconcile requests are being published."""
        self._failures = 0
        self._refusal: Exception | None = None

    def request_reconcile(
        self,
        cluster: ClusterId,
        slices: Collection[ClaimId | SliceId],
        waiting: WorkloadUid | None = None,
        *,
        ended: bool = False,
    ) -> None:
        self._fail_if_asked()
        check(partial(encode_reconcile_request, cluster, waiting=waiting, ended=ended), slices)
        self.meanwhile()
        in_order = sorted(slices) if isinstance(slices, AbstractSet) else slices  # so that a test goes alike each time
        self.requests.extend((cluster, slice_) for slice_ in in_order)
        self.waiting.update(dict.fromkeys(slices, waiting))
        self.ended |= {*slices} if ended else set()

    def pass_on(self, cluster: ClusterId, slice_: SliceId, answer: HostsChanged) -> None:
        self._fail_if_asked()
        check(partial(encode_answer, cluster, slice_), [answer])
        self.answers.append((cluster, slice_, answer))

    def request_echo(self, cluster: ClusterId, asked_at: datetime) -> None:
        self._fail_if_asked()
        check(partial(encode_echo_request, cluster), [asked_at])
        self.echoes.append((cluster, asked_at))

    def request_join(self, cluster: ClusterId, token: JoinToken) -> None:
        self._fail_if_asked()
        check(partial(encode_join_request, cluster), [token])
        self.joins.append((cluster, token))

    def announce(self, cluster: ClusterId, updates: Collection[SliceUpdate]) -> None:
        assert all(update.job.cluster == cluster for update in updates), "an update of another cluster"
        self._fail_if_asked()
        check(partial(encode_update, cluster), updates)
        self.updates.extend(updates)

    def announce_workloads(self, cluster: ClusterId, updates: Collection[WorkloadUpdate]) -> None:
        self._fail_if_asked()
        check(partial(encode_report, cluster), updates)
        if self._refusal is not None:
            refusal, self._refusal = self._refusal, None
            raise refusal
        self.reports.extend((cluster, update) for update in updates)

    def announce_node_group(self, cluster: ClusterId, update: NodeGroupUpdate) -> None:
        self._fail_if_asked()
        check(partial(encode_node_group, cluster), [update])
        self.node_groups.append((cluster, update))

    def announce_mirror(self, cluster: ClusterId, told: Collection[AnyMirror]) -> None:
        self._fail_if_asked()
        check(partial(encode_mirror, cluster), told)
        self.mirror.extend(told)

    def notify(self, cluster: ClusterId, notifications: Collection[Notification]) -> None:
        assert all(each.cluster == cluster for each in notifications), "a notification of another cluster"
        self._fail_if_asked()
        check(encode_notification, notifications)
        self.notifications.extend(notifications)

    def try_updates(self, cluster: ClusterId, asked_at: datetime) -> None:
        self._fail_if_asked()
        question = EchoQuestion(asked_at=asked_at, by_updates=True)
        check(partial(encode_question, cluster), [question])
        self.tries.append((cluster, question))

    def ask(self, cluster: ClusterId, questions: Collection[AnyQuestion]) -> None:
        self._fail_if_asked()
        check(partial(encode_question, cluster), questions)
        self.questions.extend((cluster, question) for question in questions)

    def fail_next(self, times: int = 1) -> None:
        """Let the next calls raise Temporary and publish nothing."""
        self._failures += times

    def refuse_next_report(self, refusal: Exception) -> None:
        """Let the next announcement of reports raise this."""
        self._refusal = refusal

    def take_requests(self) -> list[tuple[ClusterId, ClaimId | SliceId]]:
        """Return the requests published since the last call."""
        taken, self.requests = self.requests, []
        return taken

    def _fail_if_asked(self) -> None:
        if self._failures > 0:
            self._failures -= 1
            raise Temporary("the publisher was told to fail")
