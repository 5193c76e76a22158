"""JobSet in the embedded API server: its CRD is installed and stays, the webhooks only as long as somebody serves them.

JobSets are checked by the webhook: the server heeds no schema.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tpu_standins.clients.api import Api
from tpu_standins.clients.installing import ANYTHING, NotInstalled, crd, install, rule, tried, webhook
from tpu_standins.clients.kinds import KINDS
from tpu_standins.clients.labels import marked
from tpu_standins.clients.objects import Object, Objects
from tpu_standins.jobset.fields import admitted
from tpu_standins.jobset.keys import JOBSET_NAME
from tpu_standins.jobset.pods import placed

NAME = "tpu-slices-local-jobset"
"""The field manager of what is applied, and the name of the webhooks' configuration."""
WEBHOOKS: Mapping[str, Callable[[Objects, Object], Object]] = MappingProxyType({"/jobset": admitted, "/pod": placed})
"""By path: each returns the object of a request as it is to be. They raise Refused."""
_KIND = KINDS["jobsets"]
_COLUMNS = {
    "TerminalState": ".status.terminalState",
    "Restarts": ".status.restarts",
    "Completed": '.status.conditions[?(@.type=="Completed")].status',
    "Suspended": ".spec.suspend",
    "Age": ".metadata.creationTimestamp",
}
"""What `kubectl get jobsets` shows, as upstream."""


def install_crd(api: Api) -> None:
    """Install the CRD, and wait until JobSets are served. Raise ApiError, or NotInstalled on any other API server."""
    if not api.call("GET", "/version")["gitVersion"].endswith("-embedded"):
        raise NotInstalled("it is not the embedded API server; JobSet's own controller is for all others")
    install(api, _KIND, crd(_KIND, {"spec": ANYTHING, "status": ANYTHING}, _COLUMNS), manager=NAME)


def configurations(address: str, authority: bytes) -> dict[str, Object]:
    """Return the webhooks' configuration, by plural: new and changed JobSets, and new pods of a JobSet."""
    of_a_jobset = {"matchExpressions": [{"key": JOBSET_NAME, "operator": "Exists"}]}
    jobsets, pods = rule(_KIND, "CREATE", "UPDATE"), rule(KINDS["pods"], "CREATE")
    webhooks = [
        webhook("mjobset.kb.io", f"{address}/jobset", authority, jobsets),
        webhook("mpod.kb.io", f"{address}/pod", authority, pods, objectSelector=of_a_jobset),
    ]
    return {"mutatingwebhookconfigurations": marked({"metadata": {"name": NAME}, "webhooks": webhooks})}


def called(api: Api) -> bool:
    """Return whether the webhooks are called: a JobSet that is not stored gets defaults."""
    made = tried(api, _KIND, {"metadata": {"name": "probe"}, "spec": {"replicatedJobs": []}})
    return made is not None and "startupPolicy" in made["spec"]
