"""Installs a controller as its users do, with kubectl, and makes the files that its program reads."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from tpu_standins.certificates import certificates, renewable
from tpu_standins.clients.installing import NotInstalled, wait
from tpu_standins.controllers.catalogue import MANIFESTS, Controller
from tpu_standins.controllers.manifests import HOST, Json, Place, configuration, configured, objects, service
from tpu_standins.kubeconfig import for_token_file, write_private

_DAY, _CRD = "24h", "CustomResourceDefinition"


def install(controller: Controller, build: Path, kubeconfig: Path, place: Place, asked: Path | None = None) -> None:
    """Apply all that the controller's project installs but its pod, and write what its program reads.

    `kubeconfig` is an administrator's; `asked` has a configuration instead of the project's. A token of the
    controller's ServiceAccount lasts a day. Raise NotInstalled.
    """
    manifests, now = manifests_of(build), datetime.now(UTC)
    own = renewable(HOST, now, name, service(manifests)) if (name := controller.authority) else certificates(HOST, now)
    write_private(place.folder / "tls.crt", own.server.decode())
    write_private(place.folder / "tls.key", own.key.decode())
    write_private(place.authority, own.authority.decode())
    first, webhooks = objects(manifests, place, own)
    _apply(kubeconfig, [each for each in first if each["kind"] != _CRD])
    _apply_kinds(kubeconfig, [each for each in first if each["kind"] == _CRD])
    _apply(kubeconfig, webhooks)
    namespace, _, account = controller.account.partition("/")
    token = _kubectl(kubeconfig, "create", "token", account, "--namespace", namespace, f"--duration={_DAY}")
    write_private(place.folder / "token", token.strip())
    theirs = for_token_file(kubeconfig.read_text(encoding="utf-8"), place.folder / "token")
    write_private(place.kubeconfig, theirs)
    text = asked.read_text(encoding="utf-8") if asked else configuration(manifests)
    place.configuration.write_text(configured(text, place, controller.settings), encoding="utf-8")


def install_kinds(build: Path, kubeconfig: Path) -> None:
    """Apply the CRDs of a controller that does not run, so that its objects can be stored. Raise NotInstalled."""
    kinds = [each for each in manifests_of(build) if each["kind"] == _CRD]
    for each in kinds:
        each["spec"].pop("conversion", None)  # nobody serves it
    _apply_kinds(kubeconfig, kinds)


def manifests_of(build: Path) -> list[Json]:
    """Return the objects that the project of a controller installs."""
    found: list[Json] = json.loads((build / MANIFESTS).read_text(encoding="utf-8"))
    return found


def _apply_kinds(kubeconfig: Path, kinds: list[Json]) -> None:
    """Apply CRDs, and wait until their kinds are served."""
    _apply(kubeconfig, kinds)
    names = [each["metadata"]["name"] for each in kinds]
    wait(lambda: _are_served(kubeconfig, names), f"the API server does not serve {', '.join(names)}")


def _are_served(kubeconfig: Path, kinds: list[str]) -> bool:
    found = json.loads(_kubectl(kubeconfig, "get", "crd", *kinds, "-o", "json"))
    conditions = [each.get("status", {}).get("conditions") or [] for each in found.get("items", [found])]
    return all(any(is_["type"] == "Established" and is_["status"] == "True" for is_ in of) for of in conditions)


def _apply(kubeconfig: Path, wanted: list[Json]) -> None:
    together = {"apiVersion": "v1", "kind": "List", "items": wanted}
    _kubectl(kubeconfig, "apply", "--server-side", "--force-conflicts", "-f", "-", text=json.dumps(together))


def _kubectl(kubeconfig: Path, *arguments: str, text: str = "") -> str:
    command = ("kubectl", f"--kubeconfig={kubeconfig}", *arguments)
    said = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if said.returncode != 0:
        raise NotInstalled(said.stderr.strip())
    return said.stdout
