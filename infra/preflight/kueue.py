"""Kueue evicts a workload whose pods are not ready in time: it must be given the time that a slice's creation takes."""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import yaml

from infra.preflight.answers import Answer, Found, Missing
from infra.preflight.findings import Finding, error, unread, warning
from tpu_slices.domain.model.texts import duration

NAMESPACE, NAME, KEY = "kueue-system", "kueue-manager-config", "controller_manager_config.yaml"
GROUP = "/apis/kueue.x-k8s.io"
CONFIG = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{NAME}"
LONGEST_CREATION = timedelta(minutes=40)
"""GKE tries for some 35 minutes to get the hosts of a pool before it reports a stockout; then they must boot."""
_DEFAULTS = {"v1beta1": timedelta(minutes=5), "v1beta2": timedelta(minutes=30)}
_PART = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|s)")
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_EDIT = f"kubectl edit configmap {NAME} --namespace {NAMESPACE}"


def kueue_findings(group: Answer, config: Answer) -> Iterator[Finding]:
    """Yield whether Kueue waits long enough; `group` is its API, `config` its ConfigMap."""
    if not isinstance(group, Found):
        return
    yield from unread("how long Kueue waits for pods", config)
    if isinstance(config, Found):
        yield from _timeout(config.body.get("data", {}).get(KEY, ""))
    elif isinstance(config, Missing):
        yield warning(f"Kueue is installed, and its ConfigMap {NAMESPACE}/{NAME} was not found: {_ADVICE}")


_MINUTES = f"{LONGEST_CREATION // timedelta(minutes=1)}m"
_ADVICE = f"if waitForPodsReady is on, its timeout must be at least {_MINUTES}."


def _timeout(text: str) -> Iterator[Finding]:
    try:
        document = yaml.safe_load(text) or {}
        waits = document.get("waitForPodsReady")
        version = str(document.get("apiVersion", "")).rpartition("/")[2]
        if waits is None or not (version != "v1beta1" or waits.get("enable")):
            return
        timeout = _duration(waits.get("timeout")) or _DEFAULTS.get(version, timedelta())
    except (yaml.YAMLError, AttributeError, ValueError):
        yield warning(f"Kueue's configuration in {NAMESPACE}/{NAME} could not be read: {_ADVICE}")
        return
    if timeout < LONGEST_CREATION:
        yield error(
            f"Kueue evicts a JobSet whose pods are not ready after {duration(timeout)}; creating its slices can take "
            f"{_MINUTES}: it would be evicted again and again. Set it, and restart its deployment.",
            _EDIT,
            f"waitForPodsReady: {{timeout: {_MINUTES}}}  # the other fields as they are",
        )


def _duration(written: Any) -> timedelta | None:
    """Return a duration as Go writes it, such as 1h30m; None: not set. Raises ValueError."""
    if written is None:
        return None
    parts = _PART.findall(str(written))
    if "".join(amount + unit for amount, unit in parts) != str(written):
        raise ValueError(f"{written!r} is no duration")
    return timedelta(seconds=sum(float(amount) * _SECONDS[unit] for amount, unit in parts))
