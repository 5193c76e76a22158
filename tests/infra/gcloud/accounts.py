"""The accounts of Google Cloud with memory: projects, their APIs, roles and policies, service accounts, buckets.

It has as much of each API as gcloud asks of it for infra/bootstrap.sh, and refuses what Google refuses: what is there
already, what is not, and a policy that was changed since it was read.
"""

import base64
import re
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from tests.infra.loopback import NOT_FOUND, Request, Response, refusal

CONFLICT = 409
_PROJECT = r"/v1/projects/([a-z-]+)"
_DONE = {"name": "operations/done", "done": True, "response": {}}


@dataclass
class Accounts:
    """`projects` with whether each has a billing account."""

    projects: dict[str, bool]
    apis: set[str] = field(default_factory=set)
    """`PROJECT/API`."""
    agents: set[str] = field(default_factory=set)
    policies: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By project, by the address of a service account, or by bucket."""
    accounts: dict[str, dict[str, Any]] = field(default_factory=dict)
    roles: dict[str, dict[str, Any]] = field(default_factory=dict)
    buckets: dict[str, dict[str, Any]] = field(default_factory=dict)
    channels: dict[str, dict[str, Any]] = field(default_factory=dict)
    changes: list[str] = field(default_factory=list)
    """What changed something, as `METHOD PATH`."""
    unknown: list[str] = field(default_factory=list)
    """What was asked and is not simulated."""

    def answer(self, request: Request) -> Response:
        asked = f"{request.method} {request.path}"
        for pattern, method in _ROUTES.items():
            if match := re.fullmatch(pattern, asked):
                before = deepcopy(self._state)
                response: Response = getattr(self, method)(request, *match.groups())
                if before != self._state:
                    self.changes.append(asked)
                return response
        self.unknown.append(asked)
        return refusal(NOT_FOUND)

    @property
    def _state(self) -> tuple[object, ...]:
        return self.apis, self.agents, self.policies, self.accounts, self.roles, self.buckets, self.channels

    def members(self, where: str) -> set[tuple[str, str]]:
        """Return the grants of a policy, as (role, member)."""
        bindings = self.policies.get(where, {}).get("bindings", ())
        return {(each["role"], member) for each in bindings for member in each["members"]}

    def _project(self, _: Request, name: str) -> Response:
        if name not in self.projects:
            return refusal(NOT_FOUND)
        return Response({"projectId": name, "projectNumber": "4711", "lifecycleState": "ACTIVE"})

    def _billing(self, _: Request, name: str) -> Response:
        return Response({"billingEnabled": True} if self.projects[name] else {})

    def _enable(self, request: Request, name: str) -> Response:
        self.apis |= {f"{name}/{api}" for api in request.body["serviceIds"]}
        return Response(_DONE)

    def _enabled(self, _: Request, name: str) -> Response:
        names = sorted(api.partition("/")[2] for api in self.apis if api.startswith(f"{name}/"))
        return Response({"services": [{"config": {"name": api}, "state": "ENABLED"} for api in names]})

    def _agent(self, _: Request, name: str, api: str) -> Response:
        self.agents.add(f"{name}/{api}")
        return Response({**_DONE, "response": {"email": f"{api}@agents", "uniqueId": "1"}})

    def _bucket(self, _: Request, name: str) -> Response:
        return Response(self.buckets[name]) if name in self.buckets else refusal(NOT_FOUND)

    def _make_bucket(self, request: Request) -> Response:
        if request.body["name"] in self.buckets:
            return refusal(CONFLICT)
        self.buckets[request.body["name"]] = request.body
        return Response(request.body)

    def _change_bucket(self, request: Request, name: str) -> Response:
        self.buckets[name] = {**self.buckets[name], **request.body}
        return Response(self.buckets[name])

    def _bucket_policy(self, request: Request, name: str) -> Response:
        if request.method == "PUT":
            self.policies[f"gs://{name}"] = request.body
        return Response(self.policies.get(f"gs://{name}", {"etag": _etag(0)}))

    def _channels(self, _: Request, project: str) -> Response:
        """Whatever filter is sent: gcloud applies it to the answer, too."""
        of_project = [each for name, each in self.channels.items() if name.startswith(f"projects/{project}/")]
        return Response({"notificationChannels": of_project} if of_project else {})

    def _make_channel(self, request: Request, project: str) -> Response:
        name = f"projects/{project}/notificationChannels/{len(self.channels) + 1}"
        self.channels[name] = {**request.body, "name": name}
        return Response(self.channels[name])

    def _delete_channel(self, _: Request, name: str) -> Response:
        return Response({}) if self.channels.pop(name, None) else refusal(NOT_FOUND)

    def _account(self, _: Request, __: str, email: str) -> Response:
        return Response(self.accounts[email]) if email in self.accounts else refusal(NOT_FOUND)

    def _make_account(self, request: Request, project: str) -> Response:
        email = f"{request.body['accountId']}@{project}.iam.gserviceaccount.com"
        if email in self.accounts:
            return refusal(CONFLICT)
        self.accounts[email] = {"email": email, "name": f"projects/{project}/serviceAccounts/{email}"}
        return Response(self.accounts[email])

    def _delete_account(self, _: Request, __: str, email: str) -> Response:
        return Response({}) if self.accounts.pop(email, None) else refusal(NOT_FOUND)

    def _policy(self, _: Request, *where: str) -> Response:
        return Response(self.policies.get(where[-1], {"version": 1, "etag": _etag(0)}))

    def _set_policy(self, request: Request, *where: str) -> Response:
        now = self.policies.get(where[-1], {"etag": _etag(0)})
        policy = request.body["policy"]
        if policy.get("etag") != now["etag"]:
            return refusal(CONFLICT, "there were concurrent policy changes")
        self.policies[where[-1]] = {**policy, "etag": _etag(1 + int(base64.b64decode(now["etag"])))}
        return Response(self.policies[where[-1]])

    def _role(self, _: Request, name: str) -> Response:
        return Response(self.roles[name]) if name in self.roles else refusal(NOT_FOUND)

    def _make_role(self, request: Request, project: str) -> Response:
        name = f"projects/{project}/roles/{request.body['roleId']}"
        if name in self.roles:
            return refusal(CONFLICT)
        self.roles[name] = {**request.body["role"], "name": name}
        return Response(self.roles[name])

    def _change_role(self, request: Request, name: str) -> Response:
        self.roles[name] = {**self.roles[name], **request.body}
        return Response(self.roles[name])

    def _delete_role(self, _: Request, name: str) -> Response:
        self.roles[name] = {**self.roles[name], "deleted": True}
        return Response(self.roles[name])

    def _undelete_role(self, _: Request, name: str) -> Response:
        self.roles[name] = {key: value for key, value in self.roles[name].items() if key != "deleted"}
        return Response(self.roles[name])


def _etag(number: int) -> str:
    return base64.b64encode(b"%d" % number).decode()


_ROLE = r"/v1/(projects/[a-z-]+/roles/\w+)"
_ACCOUNT = _PROJECT + r"/serviceAccounts/([^:]+)"
_ROUTES = {
    f"GET {_PROJECT}": "_project",
    f"GET {_PROJECT}/billingInfo": "_billing",
    f"POST {_PROJECT}/services:batchEnable": "_enable",
    f"GET {_PROJECT}/services": "_enabled",
    r"POST /v1beta1/projects/([a-z-]+)/services/([a-z.]+):generateServiceIdentity": "_agent",
    r"GET /storage/v1/b/([a-z-]+)": "_bucket",
    r"POST /storage/v1/b": "_make_bucket",
    r"PATCH /storage/v1/b/([a-z-]+)": "_change_bucket",
    r"(?:GET|PUT) /storage/v1/b/([a-z-]+)/iam": "_bucket_policy",
    r"GET /v3/projects/([a-z-]+)/notificationChannels": "_channels",
    r"POST /v3/projects/([a-z-]+)/notificationChannels": "_make_channel",
    r"DELETE /v3/(projects/[a-z-]+/notificationChannels/[0-9]+)": "_delete_channel",
    f"GET {_ACCOUNT}": "_account",
    f"POST {_PROJECT}/serviceAccounts": "_make_account",
    f"DELETE {_ACCOUNT}": "_delete_account",
    f"POST {_ACCOUNT}:getIamPolicy": "_policy",
    f"POST {_ACCOUNT}:setIamPolicy": "_set_policy",
    f"POST {_PROJECT}:getIamPolicy": "_policy",
    f"POST {_PROJECT}:setIamPolicy": "_set_policy",
    f"GET {_ROLE}": "_role",
    f"POST {_PROJECT}/roles": "_make_role",
    f"PATCH {_ROLE}": "_change_role",
    f"DELETE {_ROLE}": "_delete_role",
    f"POST {_ROLE}:undelete": "_undelete_role",
}
