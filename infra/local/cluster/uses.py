"""The reason why each verb is served: the kubectl command, or the client, that needs it (a table).

A verb that no row needs is not served. Tests run the commands with the oldest and the newest kubectl.
"""

from dataclasses import dataclass

from infra.local.cluster.targets import (
    APPLY_PATCH,
    JSON,
    JSON_PATCH,
    MERGE_PATCH,
    PROTOBUF,
    SERVED,
    STRATEGIC_MERGE_PATCH,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """A verb with a content type (empty: without a body), and who sends it.

    `plural` and `subresource`: the resource; an empty plural stands for every resource that has the verb.
    `command`: arguments of kubectl, in which {plural}, {name} and {node} are replaced and `-f-` reads the object.
    `since`: the minor version of kubectl that first sends this type with this command.
    `client`: who else sends it, if no kubectl command does.
    """

    verb: str
    content_type: str = ""
    plural: str = ""
    subresource: str = ""
    command: str = ""
    since: int = 0
    client: str = ""

    def is_of(self, plural: str, subresource: str, verb: str, content_type: str) -> bool:
        where = self.plural in ("", plural) and self.subresource == subresource
        return where and (self.verb, self.content_type) == (verb, content_type)


def _created(plural: str, command: str) -> Use:
    """Return the row of a `kubectl create KIND` command, which sends protobuf since 1.31."""
    return Use(verb="create", content_type=PROTOBUF, plural=plural, command=f"create {command}", since=31)


_PATCHES = {
    JSON_PATCH: '--type=json -p [{"op":"test","path":"/metadata/name","value":"{name}"}]',
    MERGE_PATCH: '--type=merge -p {"metadata":{"labels":{"merged":"yes"}}}',
    STRATEGIC_MERGE_PATCH: '-p {"metadata":{"labels":{"strategic":"yes"}}}',
}
_OBJECTS = (
    Use(verb="create", content_type=JSON, command="create -f-"),
    Use(verb="get", command="get {plural} {name} -o yaml"),
    Use(verb="list", command="get {plural} -o wide"),
    Use(verb="watch", command="get {plural} --watch"),
    *(
        Use(verb="patch", content_type=kind, command=f"patch {{plural}} {{name}} {flags}")
        for kind, flags in _PATCHES.items()
    ),
    Use(verb="patch", content_type=APPLY_PATCH, command="apply --server-side --force-conflicts -f-"),
    Use(verb="update", content_type=JSON, command="replace -f-"),
    Use(verb="delete", command="delete {plural} {name}"),
    Use(verb="deletecollection", client="the official client: delete_collection_..."),
)
_STATUS = (
    Use(verb="get", subresource="status", command="get {plural} {name} --subresource=status"),
    *(
        Use(
            verb="patch",
            content_type=kind,
            subresource="status",
            command=f"patch {{plural}} {{name}} --subresource=status {flags}",
        )
        for kind, flags in _PATCHES.items()
    ),
    Use(
        verb="patch",
        content_type=APPLY_PATCH,
        subresource="status",
        client="controllers that apply: the official client, patch_..._status; kubectl apply --subresource since 1.32",
    ),
    Use(verb="update", content_type=JSON, subresource="status", command="replace --subresource=status -f-"),
)
_SPECIAL = (
    _created("namespaces", "namespace {name}"),
    _created("configmaps", "configmap {name}"),
    _created("priorityclasses", "priorityclass {name} --value=1"),
    _created("serviceaccounts", "serviceaccount {name}"),
    _created("deployments", "deployment {name} --image=python:3.12 --replicas=2 --port=80"),
    _created("jobs", "job {name} --image=python:3.12 -- python --version"),
    _created("clusterroles", "clusterrole {name} --verb=get --resource=pods"),
    _created("clusterrolebindings", "clusterrolebinding {name} --clusterrole=view --user=someone"),
    _created("roles", "role {name} --verb=get --resource=pods"),
    _created("rolebindings", "rolebinding {name} --role=reader --user=someone"),
    Use(verb="create", content_type=JSON, plural="pods", subresource="binding", client="schedulers"),
    Use(verb="create", content_type=JSON, plural="pods", subresource="eviction", command="drain {node} --force"),
    Use(verb="create", content_type=PROTOBUF, plural="pods", subresource="eviction", client="typed clients in Go"),
    Use(verb="get", plural="pods", subresource="log", command="logs {name}"),
)

USES = (*_OBJECTS, *_STATUS, *_SPECIAL)


def served() -> list[tuple[str, str, str, str]]:
    """Return the rows of the table of served verbs: plural, subresource, verb, content type."""
    return [
        (plural, subresource, verb, content_type)
        for (plural, subresource), verbs in SERVED.items()
        for verb, types in verbs.items()
        for content_type in types or ("",)
    ]
