"""The calls to the API server about Kueue's objects, in the version of its API that is served."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Protocol

from kubernetes import client
from kubernetes.client.exceptions import ApiException

from relay import translate
from relay.cluster import CONFLICT, NOT_FOUND, TIMEOUTS, converted_errors, raw
from relay.kueue.objects import (
    ACTIVE,
    GROUP,
    VERSIONS,
    AdmissionCheck,
    Json,
    Queued,
    admission_check,
    flavor,
    queued,
)
from relay.kueue.reservations import kind_of
from relay.kueue.rules import Finding, applied
from relay.objects import Aside
from relay.watch import Response, Source
from tpu_slices.domain.model.slices import Owner, WorkloadUid
from tpu_slices.ports.errors import Temporary
from tpu_slices.wire.readers import READERS

MANAGER = "tpu-slice-provisioner"
_APPLY = "application/apply-patch+yaml"


class Workloads(Protocol):
    """As `relay.cluster.Cluster`."""

    def workload(self, owner: Owner) -> Json | None: ...


class KueueCalls:
    """Single calls. They raise Temporary and Permanent as those of `relay.cluster.Cluster` do."""

    def __init__(self, api: client.ApiClient, workloads: Workloads) -> None:
        self._workloads = workloads
        self._custom: Any = client.CustomObjectsApi(api)
        self._version = ""

    def is_installed(self) -> bool:
        """Return whether Kueue's kinds are served in a version that is known here; raise what the client raises."""
        self._version = next(filter(self._serves, VERSIONS), "")
        return bool(self._version)

    def sources(self, is_asked: Callable[[], bool]) -> tuple[Source[Aside, Any], ...]:
        """Return what is watched; Workloads and flavors count as not installed until Kueue has a check of ours."""
        return (
            self._source(Aside.ADMISSION_CHECKS, "admissionchecks", admission_check, "name"),
            self._source(Aside.QUEUED, "workloads", queued, "uid", is_asked),
            self._source(Aside.FLAVORS, "resourceflavors", flavor, "name", is_asked),
        )

    def apply(self, to: Queued, ours: frozenset[str], finding: Finding, now: datetime) -> bool:
        """Write what all checks of ours say; return False if the Workload is another by now, or gone.

        With force: Kueue owns these fields after each eviction.
        """
        body = applied(to, ours, finding, now)
        write = self._custom.patch_namespaced_custom_object_status
        with converted_errors():
            try:
                self._apply(partial(write, GROUP, self._known(), to.namespace, "workloads"), body)
            except ApiException as error:
                if error.status in {NOT_FOUND, CONFLICT}:
                    return False
                raise
        return True

    def announce(self, check: AdmissionCheck, *, active: bool, message: str, now: datetime) -> None:
        """Write whether a check of ours is answered; one that is gone is ignored."""
        said = {
            "type": ACTIVE,
            "status": "True" if active else "False",
            "reason": "Answered" if active else "ParametersNotSupported",
            "message": message,
            "lastTransitionTime": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        status = {"conditions": [said]}
        body = {"kind": "AdmissionCheck", "metadata": {"name": check.name}, "status": status}
        with converted_errors(NOT_FOUND):
            write = self._custom.patch_cluster_custom_object_status
            self._apply(partial(write, GROUP, self._known(), "admissionchecks"), body)

    def asks_us(self, queued: Queued) -> bool:
        """Return whether what a Workload stands for may ask for slices from here; True if it is gone."""
        kind, owner = kind_of(queued), queued.owner
        if kind is None or owner is None:
            return False
        asked = Owner(kind=kind, namespace=owner.namespace, name=owner.name, uid=WorkloadUid(owner.uid))
        found = self._workloads.workload(asked)
        return found is None or translate.workload(READERS[kind], found) is not None

    def _source(
        self,
        kind: Aside,
        plural: str,
        read: Callable[[Json], Any],
        identity: str,
        is_asked: Callable[[], bool] = lambda: True,
    ) -> Source[Aside, Any]:
        fetch = partial(self._listed, plural)
        called = f"{plural} of {GROUP}"
        return Source(kind, fetch, read, identity, called, lambda: is_asked() and self.is_installed())

    def _listed(self, plural: str, **parameters: Any) -> Response:
        found: Response = self._custom.list_cluster_custom_object(GROUP, self._version, plural, **parameters)
        return found

    def _serves(self, version: str) -> bool:
        try:
            raw(self._custom.get_api_resources, GROUP, version, seconds=TIMEOUTS)
        except ApiException as error:
            if error.status == NOT_FOUND:
                return False
            raise
        return True

    def _known(self) -> str:
        if not self._version:
            raise Temporary(f"the API server serves no version of {GROUP} that is known: {', '.join(VERSIONS)}")
        return self._version

    def _apply(self, write: Any, body: Mapping[str, Any]) -> None:
        """Write fields of a status by server-side apply: those of others stay."""
        write(
            body["metadata"]["name"],
            {"apiVersion": f"{GROUP}/{self._known()}", **body},
            field_manager=MANAGER,
            force=True,
            _content_type=_APPLY,
            _request_timeout=TIMEOUTS,
            _preload_content=False,
        )
