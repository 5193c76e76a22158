"""The builds of the environments as files; tests/infra/gcloud runs their steps."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from infra.environments.plans import CLUSTER
from infra.environments.training.builds import variables as training
from infra.environments.training.builds.plans import BUCKET
from infra.environments.triton.builds import variables as triton
from infra.environments.triton.builds.__main__ import BUCKET as MODELS
from tests.infra.sources import (
    BUILD,
    DESTROY_TRAINING,
    DESTROY_TRITON,
    ENVIRONMENTS,
    HUB,
    PROVISION_TRAINING,
    PROVISION_TRITON,
    ROOT,
    TRAINING,
    TRITON,
    blocks,
    on_hub,
)

Build = Mapping[str, Any]


@dataclass(frozen=True)
class Environment:
    folder: Path
    provision: Build
    destroy: Build
    reference: frozenset[str]
    """The substitutions of the system that it replaces, with which its own commands work here."""
    of_the_build: frozenset[str]
    """Those that set no variable by their names alone."""
    prefix: str
    """Of its states, unless another one is given."""
    variables: Mapping[str, Mapping[str, str]]
    """By root and substitution."""
    computed: Mapping[str, frozenset[str]]
    """By root, variables that the build sets of itself."""
    bucket: str
    """Its address."""

    @property
    def page(self) -> str:
        return (self.folder / "README.md").read_text()

    @property
    def builds(self) -> Mapping[str, Build]:
        return {"provision": self.provision, "destroy": self.destroy}

    def files(self, root: str) -> Mapping[str, Any]:
        return ENVIRONMENTS[(self.folder / root).relative_to(ROOT).as_posix()]

    def declared(self, root: str) -> dict[str, Any]:
        blocks = (block for file in self.files(root).values() for block in file.get("variable", []))
        return {each: body for block in blocks for each, body in block.items()}


ALL = (
    Environment(
        folder=TRAINING,
        provision=PROVISION_TRAINING,
        destroy=DESTROY_TRAINING,
        reference=frozenset({
            "_TF_STATE_BUCKET", "_TF_STATE_PREFIX", "_REGION", "_ZONE", "_NETWORK_NAME", "_SUBNET_NAME",
            "_CLUSTER_NAME", "_NAMESPACE", "_TPU_TYPE", "_NUM_TPU_POOLS", "_NUM_OF_CHIPS",
            "_ARTIFACT_REPOSITORY_BUCKET_NAME", "_JOBSET_API_VERSION", "_KUEUE_API_VERSION",
            "_TENSORBOARD_REGION",  # since its second generation
        }),
        of_the_build=frozenset({"_TF_STATE_BUCKET", "_TF_STATE_PREFIX", "_NUM_OF_CHIPS"}),
        prefix="gke-tpu-training-environment",
        variables=training.VARIABLES,
        computed={
            "infrastructure": frozenset(),
            "configuration": frozenset({"state_prefix", "provisioner_settings_file"}),
        },
        bucket=BUCKET,
    ),
    Environment(
        folder=TRITON,
        provision=PROVISION_TRITON,
        destroy=DESTROY_TRITON,
        reference=frozenset({
            "_TF_STATE_BUCKET", "_TF_STATE_PREFIX", "_REGION", "_ZONE", "_NETWORK_NAME", "_SUBNET_NAME",
            "_GCS_BUCKET_NAME", "_GKE_CLUSTER_NAME", "_TRITON_SA_NAME", "_TRITON_NAMESPACE", "_MACHINE_TYPE",
            "_ACCELERATOR_TYPE", "_ACCELERATOR_COUNT",
            "_MODEL_REPOSITORY",  # instead of the one model that it downloads
        }),
        of_the_build=frozenset({"_TF_STATE_BUCKET", "_TF_STATE_PREFIX", "_MODEL_REPOSITORY"}),
        prefix="triton-on-gke",
        variables=triton.VARIABLES,
        computed={"infrastructure": frozenset()},
        bucket=MODELS,
    ),
)  # fmt: skip
EACH = pytest.mark.parametrize("environment", ALL, ids=lambda each: each.folder.name)
EACH_BUILD = pytest.mark.parametrize(
    ("environment", "build"),
    [pytest.param(each, build, id=f"{name} {each.folder.name}") for each in ALL for name, build in each.builds.items()],
)


@EACH_BUILD
def test_the_substitutions_are_those_of_the_reference_and_where_images_come_from(
    environment: Environment, build: Build
) -> None:
    assert build["substitutions"].keys() == environment.reference | {"_HUB"}
    assert {name: value for name, value in build["substitutions"].items() if value} == {
        "_TF_STATE_PREFIX": environment.prefix,
        "_HUB": "mirror.gcr.io",
    }


@EACH
def test_every_substitution_is_of_the_build_or_sets_a_variable_that_exists(environment: Environment) -> None:
    mapped = {key for names in environment.variables.values() for key in names} - {"PROJECT_ID"}
    assert mapped | environment.of_the_build == environment.reference
    for root, names in environment.variables.items():
        assert {*names.values(), *environment.computed[root]} <= environment.declared(root).keys()


@EACH
def test_every_variable_that_must_be_set_can_be(environment: Environment) -> None:
    for root, names in environment.variables.items():
        needed = {name for name, body in environment.declared(root).items() if "default" not in body}
        assert needed <= {*names.values(), *environment.computed[root]}


@EACH
def test_the_page_has_every_substitution(environment: Environment) -> None:
    table = environment.page.partition("| substitution |")[2].partition("\n\n")[0]
    assert set(re.findall(r"`(_[A-Z_]+)`", table)) == environment.reference | {"_HUB"}


@EACH
def test_the_commands_in_the_headers_set_what_is_required(environment: Environment) -> None:
    for name in environment.builds:
        path = environment.folder / f"cloudbuild.{name}.yaml"
        text = path.read_text()
        command = text.partition("gcloud builds submit")[2].partition("\n#\n")[0]
        required = set(re.findall(r'^  (_[A-Z_]+): "" # required', text, re.MULTILINE))
        assert required <= set(re.findall(r"(_[A-Z_]+)=", command))
        assert f"--config {path.relative_to(ROOT)}" in command


@EACH_BUILD
def test_every_image_is_one_of_the_deployments(environment: Environment, build: Build) -> None:
    del environment
    assert {step["name"] for step in build["steps"]} <= {step["name"] for step in BUILD["steps"]}
    [terraform] = blocks("terraform")
    exact = terraform["required_version"].removeprefix("~> ")
    assert f"{HUB}hashicorp/terraform:{exact}" in {step["name"] for step in build["steps"]}


@EACH_BUILD
def test_every_script_stops_at_its_first_error_and_runs_alone(environment: Environment, build: Build) -> None:
    del environment
    for step in build["steps"]:
        alpine = on_hub(step["name"]).startswith("hashicorp/terraform:")  # it has no bash
        first = "#!/bin/sh\nset -eu\n" if alpine else "#!/usr/bin/env bash\nset -euo pipefail\n"
        assert step["script"].startswith(first), step["id"]
        assert not {"waitFor", "allowFailure"} & step.keys()


def bootstrapped(environment: Environment) -> dict[str, list[str]]:
    """Return what bootstrap.sh makes for an environment: its ACCOUNT, and the ROLES of all and of its own."""
    script = (ROOT / "infra/environments/bootstrap.sh").read_text()
    own = script.partition(f"  {environment.folder.name})\n")[2].partition(";;")[0]
    found = {
        name: " ".join(re.findall(rf"{name}\+?=\(?([^)\n]*(?:\n[^)]*)?)\)?", part)).split()
        for name, part in (("ACCOUNT", own), ("ROLES", script.partition("\nenvironment=")[0]))
    }
    found["ROLES"] += " ".join(re.findall(r"ROLES\+=\(([^)]*)\)", own)).split()
    return found


@EACH_BUILD
def test_the_build_runs_as_the_account_that_bootstrap_makes(environment: Environment, build: Build) -> None:
    account = bootstrapped(environment)["ACCOUNT"][0]
    assert build["serviceAccount"].rpartition("/")[2].partition("@")[0] == account
    assert build["options"] == BUILD["options"]


@EACH
def test_the_builder_has_every_role_that_one_needs_by_hand(environment: Environment) -> None:
    roles = bootstrapped(environment)["ROLES"]
    told = re.findall(
        r"`(\w+\.\w*Admin|\w+\.admin|monitoring\.\w+)`", environment.page.partition("## In what order")[2]
    )
    assert len(told) >= 9
    assert set(told) <= set(roles)


@EACH
def test_nothing_that_terraform_has_made_is_named_that_it_does_not_make(environment: Environment) -> None:
    made = {
        f"{kind}.{name}"
        for file in environment.files("infrastructure").values()
        for block in file.get("resource", [])
        for kind, named in block.items()
        for name in named
    }
    assert {CLUSTER, environment.bucket} <= made
    scripts = "\n".join(step["script"] for step in environment.destroy["steps"])
    named = set(re.findall(r"google_\w+\.\w+", scripts))
    assert environment.bucket in named
    assert named <= {CLUSTER, environment.bucket}
