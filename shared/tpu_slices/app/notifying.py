"""The handler of the function `notify`, which has no records: what it cannot handle is logged alone.

| outcome                                          | logged               | effect on the message |
|--------------------------------------------------|----------------------|-----------------------|
| the target took it                               | notification.sent    | acknowledged          |
| the target may take it later                     | notification.delayed | redelivered           |
| the same, more than GIVEN_UP_AFTER since it was  | notification.failed  | acknowledged          |
| made                                             |                      |                       |
| the target refuses it, or it is none             | notification.failed  | acknowledged          |
"""

from __future__ import annotations

from datetime import timedelta

import structlog

from tpu_slices.app.handlers import ID_LOGGED, Event
from tpu_slices.domain.model.notifications import Notification
from tpu_slices.ports.deps import NotifyDeps
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.log_events import LogEvent
from tpu_slices.wire.envelopes import Incoming, incoming
from tpu_slices.wire.messages import about_owner, decode_notification
from tpu_slices.wire.topics import Topic

log = structlog.stdlib.get_logger()

GIVEN_UP_AFTER = timedelta(hours=1)


def handle_notify(event: Event, deps: NotifyDeps) -> None:
    """Deliver a notification of the topic `notifications-{cluster}`; raise Temporary if it is to be redelivered."""
    with structlog.contextvars.bound_contextvars(event_id=event.id[:ID_LOGGED]):
        try:
            notification = _notification(incoming(event.source, event.data))
        except Permanent as error:
            log.error(LogEvent.NOTIFICATION_FAILED, error=str(error))  # noqa: TRY400 - not a bug
            return
        _deliver(notification, deps)


def _notification(message: Incoming) -> Notification:
    """Return the notification of a message; Permanent: it came by the topic of another cluster than it is about."""
    own = Topic.NOTIFICATIONS.cluster(message.topic)
    notification = decode_notification(message.data, message.attributes)
    if notification.cluster != own:
        raise Permanent(f'cluster: "{notification.cluster}" is not that of the topic {message.topic}')
    return notification


def _deliver(notification: Notification, deps: NotifyDeps) -> None:
    about = {
        "cluster": notification.cluster,
        **about_owner(notification.owner),
        "target": notification.target,
        "occasion": notification.occasion,
        "notification": notification.id,
    }
    try:
        deps.delivery.deliver(notification)
    except Permanent as error:
        log.error(LogEvent.NOTIFICATION_FAILED, error=str(error), **about)  # noqa: TRY400 - not a bug
    except Temporary as error:
        if deps.clock.now() - notification.at > GIVEN_UP_AFTER:
            log.error(LogEvent.NOTIFICATION_FAILED, error=str(error), **about)  # noqa: TRY400 - not a bug
            return
        log.warning(LogEvent.NOTIFICATION_DELAYED, error=str(error), **about)
        raise
    else:
        log.info(LogEvent.NOTIFICATION_SENT, **about)
