"""The policy as it is applied, and the settings under which pods are tried, as expressions by their variables."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import yaml

from tests.infra.admission.policy import Policy
from tests.infra.sources import ROOT

MANIFEST = ROOT / "infra" / "kubernetes" / "admission.yaml"
DEFINED, BINDING, GANGS, GANGS_BINDING = yaml.safe_load_all(MANIFEST.read_text())
POLICY, GANGS_POLICY = Policy(DEFINED["spec"]), Policy(GANGS["spec"])
OFF: Mapping[str, str] = MappingProxyType({})
STRIP = MappingProxyType({"stripSpotAndReservation": "true"})
HINT = MappingProxyType({"locationHint": '"cell-a"'})
SERVE = MappingProxyType({"serve": "['Pod', 'Deployment', 'StatefulSet']"})
OTHERS = MappingProxyType({"serve": "['Pod', 'StatefulSet']"})
ALL_SETTINGS = (OFF, STRIP, HINT, {**STRIP, **HINT}, SERVE, OTHERS)
HINT_KEY = "cloud.google.com/gke-location-hint"
OPTED_OUT = "tpu-provisioner.cloud.google.com/disable-autoprovisioning"
