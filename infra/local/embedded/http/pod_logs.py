"""`kubectl logs` in a cluster without containers (pkg/registry/core/pod: LogLocation; pure)."""

from infra.local.embedded.http.requests import Request
from infra.local.embedded.store import errors
from infra.local.embedded.store.defaults import containers
from infra.local.embedded.store.kinds import Object


def output(pod: Object, request: Request) -> bytes:
    """Return one line that says that there is no output. Raise ApiError 400 without a valid container."""
    name, wanted = pod["metadata"]["name"], request.params.get("container", "")
    names = [container["name"] for container in containers(pod["spec"])]
    if wanted and wanted not in names:
        raise errors.bad_request(f"container {wanted} is not valid for pod {name}")
    if not wanted and len(names) > 1:
        listed = f"[{' '.join(names)}]"
        raise errors.bad_request(f"a container name must be specified for pod {name}, choose one of: {listed}")
    if request.says("previous"):
        raise errors.bad_request(f'previous terminated container "{wanted or names[0]}" in pod "{name}" not found')
    if not pod["spec"].get("nodeName") or request.number("tailLines") == 0:
        return b""
    line = f'this local cluster runs no containers: "{wanted or names[0]}" of pod "{name}" has no output\n'
    return line.encode()[: request.number("limitBytes")]
