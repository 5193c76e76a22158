"""One call of Compute Engine: state and call in, state and response out. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any
from uuid import UUID

from tpu_standins.cloud.timed import Moment
from tpu_standins.compute import faults, lifecycle, reading
from tpu_standins.compute.errors import Refusal, invalid
from tpu_standins.compute.lifecycle import Start
from tpu_standins.compute.messages import operation_message
from tpu_standins.compute.paths import Resource
from tpu_standins.compute.refusals import groups, metadata, policies, templates
from tpu_standins.compute.refusals.rules import Ask, Rule, first_refusal
from tpu_standins.compute.routes import Call
from tpu_standins.compute.state import Operation, State

Begin = Callable[[Ask, Start], tuple[State, Operation]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a call. `started` is the operation that it started, also if its response was lost."""

    state: State
    answer: Any
    started: Operation | None = None


@dataclass(frozen=True, slots=True)
class Change:
    rules: tuple[Rule, ...]
    begin: Begin


CHANGES: Mapping[str, Change] = {
    "resourcePolicies.insert": Change(policies.INSERT, lifecycle.insert_policy),
    "resourcePolicies.delete": Change(policies.DELETE, lifecycle.delete),
    "instanceTemplates.insert": Change(templates.INSERT, lifecycle.insert_template),
    "instanceTemplates.delete": Change(templates.DELETE, lifecycle.delete),
    "regionInstanceTemplates.insert": Change(templates.INSERT, lifecycle.insert_template),
    "regionInstanceTemplates.delete": Change(templates.DELETE, lifecycle.delete),
    "instanceGroupManagers.insert": Change(groups.INSERT, lifecycle.insert_group),
    "instanceGroupManagers.delete": Change(groups.DELETE, lifecycle.delete),
    "instanceGroupManagers.recreateInstances": Change(groups.CHANGE, lifecycle.on_instances),
    "instanceGroupManagers.deleteInstances": Change(groups.CHANGE, lifecycle.on_instances),
    "instanceGroupManagers.patch": Change(groups.PATCH, lifecycle.patch_group),
    "instances.setMetadata": Change(metadata.SET, lifecycle.set_metadata),
}


def respond(state: State, call: Call, moment: Moment) -> Outcome:
    """Apply a call: first faults of the call itself, then the rules, then faults of the operation."""
    if no := _bad_place(state, call.target):
        return Outcome(state=state, answer=no)
    state, fault = faults.take(state, faults.AT_ONCE, call.method, call.target)
    if fault is not None:
        return Outcome(state=state, answer=faults.refused(fault, call.method, call.target))
    if call.method in CHANGES:
        return _changed(state, call, moment)
    return Outcome(state=state, answer=reading.READS[call.method](state, call, moment.now))


def _changed(state: State, call: Call, moment: Moment) -> Outcome:
    key = (call.target.project, call.request_id)
    if no := _bad_request_id(call.request_id):
        return Outcome(state=state, answer=no)
    if call.request_id and key in state.requests:
        known = state.operations[state.requests[key]]
        return Outcome(state=state, answer=operation_message(state, known, moment.now))
    change = CHANGES[call.method]
    ask = Ask(state=state, now=moment.now, path=call.target, body=call.body)
    if no := first_refusal(ask, change.rules):
        return Outcome(state=state, answer=no)
    state, later = faults.take(state, faults.LATER, call.method, call.target)
    state, lost = faults.take(state, faults.ANSWER, call.method, call.target)
    start = Start(method=call.method, moment=moment, request=call.request_id, fault=later)
    state, operation = change.begin(replace(ask, state=state), start)
    if call.request_id:
        state = replace(state, requests={**state.requests, key: operation.path})
    answer: Any = operation_message(state, operation, moment.now)
    if lost is not None:
        answer = faults.refused(lost, call.method, call.target)
    return Outcome(state=state, answer=answer, started=operation)


def _bad_place(state: State, target: Resource) -> Refusal | None:
    """Refuse a project, zone or region that there is not. Words: tf, several threads."""
    if target.project not in state.projects:
        message = f"Failed to find project {target.project}"
        return Refusal(code=HTTPStatus.NOT_FOUND, reason="notFound", message=message, rule="unknown-project")
    kind, _, name = target.scope.partition("/")
    places = {"zones": state.zones, "regions": state.regions}.get(kind)
    if places is None or name in places:
        return None
    return invalid(kind[:-1], name, f"Unknown {kind[:-1]}.", "unknown-place")


def _bad_request_id(given: str) -> Refusal | None:
    """Refuse a requestId that is no UUID, or the zero UUID [py-gce request_id]."""
    try:
        usable = not given or (str(UUID(given)) == given.lower() and UUID(given).int != 0)
    except ValueError:
        usable = False
    return (
        None if usable else invalid("requestId", given, "The request ID must be a valid, non-zero UUID.", "request-id")
    )
