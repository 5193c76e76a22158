"""The verbs of the API: from a parsed request to a response that can be written."""

from collections.abc import Callable, Mapping
from datetime import datetime

from infra.local.cluster import bodies, errors, pod_logs, targets
from infra.local.cluster.binding import bind
from infra.local.cluster.calls import Answer, Call
from infra.local.cluster.listing import Lists, as_table, require_known, wants_table, whole_number
from infra.local.cluster.objects import Object, Objects
from infra.local.cluster.removing import Removals
from infra.local.cluster.selectors import Predicate, selection
from infra.local.cluster.targets import Target
from infra.local.cluster.watch import Watches, WatchRequest
from infra.local.cluster.writing import Writes

__all__ = ["Answer", "Api", "Call"]

_WATCH_SECONDS = 1800  # --min-request-timeout
_FORBIDDEN_FOR_WATCH = {
    "sendInitialEvents": "the WatchList feature gate is enabled",
    "resourceVersionMatch": "sendInitialEvents is provided",
}


class Api:
    def __init__(
        self, objects: Objects, watches: Watches, clock: Callable[[], datetime], bookmark_seconds: float
    ) -> None:
        self._objects = objects
        self._watches = watches
        self._clock = clock
        self._bookmark_seconds = bookmark_seconds
        self._lists = Lists(objects)
        self._writes = Writes(objects, clock)
        self._removals = Removals(objects, self._lists, clock)

    def serve(self, call: Call) -> Answer:
        """Serve a request for resources. Every refusal raises ApiError."""
        target = targets.find(call.path)
        verb = target.verb(call.method, watch=call.says("watch"))
        target.check(verb, call.content_type)
        verbs: Mapping[str, Callable[[Target, Call], Answer]] = {
            "get": self._get,
            "list": self._list,
            "watch": self._watch,
            "create": self._writes.create,
            "update": self._writes.update,
            "patch": self._writes.patch,
            "delete": self._removals.delete,
            "deletecollection": self._delete_collection,
        }
        subresources: Mapping[str, Callable[[Target, Call], Answer]] = {
            "binding": self._bind,
            "eviction": self._removals.evict,
            "log": self._log,
        }
        return subresources.get(target.subresource, verbs[verb])(target, call)

    def _get(self, target: Target, call: Call) -> Answer:
        found = self._current(target)
        if wants_table(call.accept):
            return Answer(body=as_table(target, found, self._clock(), call.params))
        return Answer(body=found)

    def _list(self, target: Target, call: Call) -> Answer:
        listed = self._lists.page(target, _matches(target, call), call.params)
        if wants_table(call.accept):
            return Answer(body=as_table(target, listed, self._clock(), call.params))
        return Answer(body=listed)

    def _watch(self, target: Target, call: Call) -> Answer:
        for parameter, condition in _FORBIDDEN_FOR_WATCH.items():
            if call.params.get(parameter):
                why = f"Forbidden: {parameter} is forbidden for watch unless {condition}"
                cause = errors.FieldError(parameter, "FieldValueForbidden", why)
                raise errors.invalid("ListOptions", "meta.k8s.io", "", [cause])
        version = call.params.get("resourceVersion", "")
        if version and not version.isdigit():
            raise errors.bad_request(f'Invalid value: "{version}": must be a resourceVersion')
        since = int(version) if version not in ("", "0") else None
        require_known(self._objects, since or 0)
        request = WatchRequest(
            plural=target.resource.plural,
            matches=_matches(target, call),
            since=since,
            render=self._render(target, call) if wants_table(call.accept) else None,
            timeout_seconds=whole_number(call.params, "timeoutSeconds") or _WATCH_SECONDS,
            bookmark_seconds=(self._bookmark_seconds if call.says("allowWatchBookmarks") else None),
        )
        return Answer(body=self._watches.stream(request))

    def _render(self, target: Target, call: Call) -> Callable[[Object], Object]:
        return lambda obj: as_table(target, obj, self._clock(), call.params)

    def _delete_collection(self, target: Target, call: Call) -> Answer:
        return self._removals.delete_collection(target, call, _matches(target, call))

    def _log(self, target: Target, call: Call) -> Answer:
        output = pod_logs.output(self._current(target), call.params, self._clock())
        return Answer(body=output, media_type="text/plain")

    def _bind(self, target: Target, call: Call) -> Answer:
        if call.is_dry():
            raise errors.not_implemented(f"dryRun of {call.path}")
        bind(self._objects, self._clock(), self._current(target), bodies.parse_object(call.body, call.content_type))
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
        return Answer(code=201, body=status)

    def _current(self, target: Target) -> Object:
        return self._objects.get(target.resource.plural, target.namespace or None, target.name)


def _matches(target: Target, call: Call) -> Predicate:
    labels, fields = call.params.get("labelSelector", ""), call.params.get("fieldSelector", "")
    if target.name:  # for a watch of a single object
        fields = ",".join(filter(None, [fields, f"metadata.name={target.name}"]))
    return selection(target.resource, labels, fields, target.namespace)
