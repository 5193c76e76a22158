"""`kubectl logs`: the choice of the container, and the output of a cluster without containers (pure).

Facts and error messages: pkg/registry/core/pod (LogLocation), pkg/apis/core/validation (ValidatePodLogOptions).
There is nothing to follow: the whole output is returned at once.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from infra.local.cluster import errors
from infra.local.cluster.errors import FieldError
from infra.local.cluster.names import invalid_value

_LEAST = {"limitBytes": 1, "sinceSeconds": 1, "tailLines": 0}


def output(pod: dict[str, Any], params: Mapping[str, str], now: datetime) -> bytes:
    """Return the log output. Raise ApiError 400 without a valid container, 422 for invalid options."""
    options = _numbers(params)
    container = _container(pod, params.get("container", ""))
    if not pod["spec"].get("nodeName") or options.get("tailLines") == 0:
        return b""
    name = pod["metadata"]["name"]
    if params.get("previous") == "true":
        raise errors.bad_request(f'previous terminated container "{container}" in pod "{name}" not found')
    line = f'this local cluster runs no containers: "{container}" of pod "{name}" has no output\n'
    if params.get("timestamps") == "true":
        line = f"{now.isoformat().replace('+00:00', 'Z')} {line}"
    return line.encode()[: options.get("limitBytes")]


def _container(pod: dict[str, Any], wanted: str) -> str:
    spec, name = pod["spec"], pod["metadata"]["name"]
    names = [container["name"] for container in spec.get("containers", [])]
    first = [container["name"] for container in spec.get("initContainers", [])]
    if wanted:
        if wanted not in (*names, *first):
            raise errors.bad_request(f"container {wanted} is not valid for pod {name}")
        return wanted
    if len(names) == 1 and not first:
        return str(names[0])
    listed = f"[{' '.join(names)}]" + (f" or one of the init containers: [{' '.join(first)}]" if first else "")
    raise errors.bad_request(f"a container name must be specified for pod {name}, choose one of: {listed}")


def _numbers(params: Mapping[str, str]) -> dict[str, int]:
    said, wrong = {}, []
    for option, least in _LEAST.items():
        text = params.get(option)
        if text is None:
            continue
        try:
            said[option] = int(text)
        except ValueError as error:
            raise errors.bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax ({option})') from error
        if said[option] < least:
            why = "must be greater than 0" if least else "must be greater than or equal to 0"
            wrong.append(invalid_value(option, said[option], why))
    if "sinceSeconds" in params and "sinceTime" in params:
        why = "Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified"
        wrong.append(FieldError("", "FieldValueForbidden", why))
    if wrong:
        raise errors.invalid("PodLogOptions", "", "", wrong)
    return said
