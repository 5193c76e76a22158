"""Kueue evicts a workload whose pods are not ready in time: it must be given the time that a slice's creation takes.

Where its queues have an admission check of ours, workloads have quota while their slices are made; what cannot work so:

| in Kueue                                        | then                                                           |
|-------------------------------------------------|----------------------------------------------------------------|
| `waitForPodsReady.blockAdmission`               | one workload that waits for slices blocks every queue          |
| `waitForPodsReady.timeout` is short             | a JobSet is evicted while its slices are made                  |
| `waitForPodsReady.recoveryTimeout` is short     | a gang that lost a slice is evicted while its others are held  |
| a check with parameters                         | it is not answered, and its queues admit nothing               |
| the queue has a check of MultiKueue, too        | slices are made here for pods that run elsewhere               |
| a flavor with a Topology                        | quota is reserved for nodes that there are only, so never      |
| `onFlavors` leaves out a flavor of the TPUs     | its workloads start without their slices, as without the check |
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import yaml

from infra.preflight.answers import Answer, Body, Found, Missing
from infra.preflight.findings import Finding, error, unread, warning
from tpu_slices.domain.model.gangs import ADMISSION_CHECKS
from tpu_slices.domain.model.texts import duration

NAMESPACE, NAME, KEY = "kueue-system", "kueue-manager-config", "controller_manager_config.yaml"
GROUP = "/apis/kueue.x-k8s.io"
CHECKS, QUEUES, FLAVORS = (
    f"{GROUP}/v1beta2/{each}" for each in ("admissionchecks", "clusterqueues", "resourceflavors")
)
MULTIKUEUE = "kueue.x-k8s.io/multikueue"
"""The controller of Kueue's checks for another cluster's workers."""
CHIPS = "google.com/tpu"
CONFIG = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{NAME}"
LONGEST_CREATION = timedelta(minutes=40)
"""GKE tries for some 35 minutes to get the hosts of a pool before it reports a stockout; then they must boot."""
_PART = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|s)")
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_EDIT = f"kubectl edit configmap {NAME} --namespace {NAMESPACE}"


@dataclass(frozen=True, slots=True)
class _Waits:
    """How long Kueue waits for pods.

    | in its configuration            | v1beta2                            | v1beta1                            |
    |---------------------------------|------------------------------------|------------------------------------|
    | no `waitForPodsReady`           | on with the defaults, since 0.19   | off                                |
    | no `enable`                     | there is no such field: on         | off                                |
    | no `timeout`, or 0              | 30 minutes                         | 5 minutes                          |
    | no `recoveryTimeout`            | as long as `timeout`               | as long as `timeout`               |
    | `recoveryTimeout` 0             | never evicted after a loss         | never evicted after a loss         |
    | no `blockAdmission`             | off                                | on                                 |
    | gate `DisableWaitForPodsReady`  | off                                | off                                |

    (apis/config/v1beta1 and v1beta2 of Kueue 0.19.2: defaults.go, configuration_conversion.go.)
    """

    timeout: timedelta
    recovery: timedelta
    blocks: bool
    by_default: bool
    """Nothing is said of it."""


def _waits(text: str) -> _Waits | None:
    """Return how long Kueue waits by its configuration; None: it does not. Raises what `_UNREADABLE` lists."""
    document = yaml.safe_load(text) or {}
    waits = document.get("waitForPodsReady")
    old = str(document.get("apiVersion", "")).endswith("/v1beta1")
    if (document.get("featureGates") or {}).get("DisableWaitForPodsReady") or (old and not (waits or {}).get("enable")):
        return None
    said = waits or {}
    timeout = _duration(said.get("timeout")) or timedelta(minutes=5 if old else 30)
    recovery = _duration(said.get("recoveryTimeout"))
    return _Waits(
        timeout=timeout,
        recovery=timeout if recovery is None else recovery or timedelta.max,
        blocks=bool(said.get("blockAdmission", old)),
        by_default=waits is None,
    )


_UNREADABLE = (yaml.YAMLError, AttributeError, ValueError)


def kueue_findings(group: Answer, config: Answer, held_for: timedelta) -> Iterator[Finding]:
    """Yield whether Kueue waits long enough; `group`: its API; `config`: its ConfigMap; gangs are held `held_for`."""
    if not isinstance(group, Found):
        return
    yield from unread("how long Kueue waits for pods", config)
    if isinstance(config, Found):
        yield from _evictions(config.body.get("data", {}).get(KEY, ""), held_for)
    elif isinstance(config, Missing):
        yield warning(f"Kueue is installed, and its ConfigMap {NAMESPACE}/{NAME} was not found: {_ADVICE}")


_MINUTES = f"{LONGEST_CREATION // timedelta(minutes=1)}m"
_ADVICE = f"if waitForPodsReady is on, its timeout must be at least {_MINUTES}."


def _evictions(text: str, held_for: timedelta) -> Iterator[Finding]:
    try:
        waits = _waits(text)
    except _UNREADABLE:
        yield warning(f"Kueue's configuration in {NAMESPACE}/{NAME} could not be read: {_ADVICE}")
        return
    if waits is None:
        return
    after_loss = max(LONGEST_CREATION, held_for)
    minutes = f"{after_loss // timedelta(minutes=1)}m"
    remedies = (_EDIT, f"waitForPodsReady: {{timeout: {_MINUTES}, recoveryTimeout: {minutes}}}  # the rest as it is")
    if waits.timeout < LONGEST_CREATION:
        short = (
            f"evicts a JobSet whose pods are not ready after {duration(waits.timeout)}; creating its slices can take "
            f"{_MINUTES}: it would be evicted again and again. Set it, and restart its deployment."
        )
        if waits.by_default:
            yield warning(f"Kueue's configuration has no waitForPodsReady: since 0.19 Kueue then {short}", *remedies)
        else:
            yield error(f"Kueue {short}", *remedies)
    elif waits.recovery < after_loss:
        yield warning(
            f"Kueue evicts a JobSet that lost a slice after {duration(waits.recovery)} (waitForPodsReady."
            f"recoveryTimeout, without it its timeout). A slice may take {_MINUTES} to be made again, and those of a "
            f"gang are held for {duration(held_for)} meanwhile. Set it, and restart its deployment.",
            *remedies,
        )


def _duration(written: Any) -> timedelta | None:
    """Return a duration as Go writes it, such as 1h30m; None: not set. Raises ValueError."""
    if written is None:
        return None
    parts = _PART.findall(str(written))
    if "".join(amount + unit for amount, unit in parts) != str(written):
        raise ValueError(f"{written!r} is no duration")
    return timedelta(seconds=sum(float(amount) * _SECONDS[unit] for amount, unit in parts))


def check_findings(checks: Answer, queues: Answer, flavors: Answer, config: Answer) -> Iterator[Finding]:
    """Yield what keeps workloads of queues with a check of ours from starting."""
    yield from unread("which admission checks Kueue's queues have", checks)
    known = {each["metadata"]["name"]: each["spec"] for each in _items(checks)}
    ours = {name for name, spec in known.items() if spec.get("controllerName") == ADMISSION_CHECKS}
    if not ours:
        return
    yield from _parameters({name: known[name] for name in sorted(ours)})
    yield from _blocking(config)
    elsewhere = {name for name, spec in known.items() if spec.get("controllerName") == MULTIKUEUE}
    topologies = {each["metadata"]["name"] for each in _items(flavors) if each.get("spec", {}).get("topologyName")}
    for queue in _items(queues):
        listed = queue["spec"].get("admissionChecksStrategy", {}).get("admissionChecks") or ()
        if of_ours := [each for each in listed if each["name"] in ours]:
            multi = any(each["name"] in elsewhere for each in listed)
            yield from _of_queue(queue, of_ours, topologies, multi=multi)


def _parameters(checks: Mapping[str, Body]) -> Iterator[Finding]:
    for name, spec in checks.items():
        if spec.get("parameters"):
            yield error(
                f"AdmissionCheck {name} has spec.parameters: it is not answered, and its queues admit nothing.",
                f'kubectl patch admissioncheck {name} --type=json -p \'[{{"op": "remove", "path": '
                '"/spec/parameters"}]\'',
            )


def _blocking(config: Answer) -> Iterator[Finding]:
    try:
        waits = _waits(config.body.get("data", {}).get(KEY, "")) if isinstance(config, Found) else None
    except _UNREADABLE:
        return
    if waits is not None and waits.blocks:
        yield error(
            "Kueue's waitForPodsReady.blockAdmission is on, and queues have an admission check that waits for slices: "
            "a workload that waits for its slices blocks every queue of the cluster. Turn it off, and restart its "
            "deployment.",
            _EDIT,
            "waitForPodsReady: {blockAdmission: false}  # the other fields as they are",
        )


def _of_queue(queue: Body, ours: Sequence[Body], topologies: set[str], *, multi: bool) -> Iterator[Finding]:
    name, groups = queue["metadata"]["name"], queue["spec"].get("resourceGroups") or ()
    of_chips = [each["name"] for group in groups if CHIPS in group["coveredResources"] for each in group["flavors"]]
    if multi:
        yield error(
            f"ClusterQueue {name} has an admission check of MultiKueue and one that waits for slices of this cluster: "
            "its workloads run in others. Give the check to the queues of the workers."
        )
    if placed := sorted(topologies & {*of_chips}):
        yield error(
            f"ClusterQueue {name} has flavors with a Topology ({', '.join(placed)}) and an admission check that waits "
            "for slices: Kueue reserves quota of such a flavor only on nodes that exist. Remove topologyName: each "
            "slice is a node pool of its own."
        )
    covered = {flavor for each in ours for flavor in each.get("onFlavors") or of_chips}
    if uncovered := [each for each in of_chips if each not in covered]:
        yield warning(
            f"ClusterQueue {name}: the admission check is not for the flavors {', '.join(uncovered)}: workloads "
            "that get these start before their slices stand."
        )


def _items(answer: Answer) -> Sequence[Body]:
    return answer.body.get("items") or () if isinstance(answer, Found) else ()
