"""The builds that deploy and take away, as files; their scripts are run in test_build_scripts.py and in gcloud/."""

import re
import tomllib
from typing import Any

import pytest

from tests.infra.sources import BUILD, DESTROY, DESTROY_STEPS, ROOT, STEPS, blocks, on_hub, resource

BUILDS = pytest.mark.parametrize("build", [BUILD, DESTROY], ids=["deploy", "destroy"])
APPLYING = ("apply", "indexes", "configure", "image", "bill-of-materials", "overlays", "roll-out", "doctor")
"""What a build leaves out that only plans."""
REQUIRED = {"_STATE_BUCKET", "_REGION", "_FIRESTORE_LOCATION"}


def scripts(build: dict[str, Any]) -> dict[str, str]:
    return {step["id"]: step["script"] for step in build["steps"]}


def with_called(script: str) -> str:
    """Return a script, and those of ours that it calls."""
    called = re.findall(r"\bbash (infra/\S+\.sh)", script)
    return "\n".join([script, *(with_called((ROOT / path).read_text()) for path in called)])


def header(build: str) -> str:
    return (ROOT / build).read_text().partition("\nsubstitutions:")[0]


def given(script: str) -> set[str]:
    """Return the variables that a script gives Terraform."""
    return set(re.findall(r"-var=\"?(\w+)=", script))


def test_preflight_comes_before_anything_is_changed_and_the_plan_before_it_is_applied() -> None:
    order = [
        "restore",
        "preflight",
        "check",
        "fetch",
        "stage",
        "init",
        "dropped",
        "channels",
        "plan",
        "keep",
        *APPLYING,
    ]
    assert list(scripts(BUILD)) == order


def test_nothing_is_taken_away_before_the_records_and_gke_were_asked() -> None:
    order = ["confirm", "retire", "fetch", "init", "unprotect", "relays", "destroy", "leftovers"]
    assert list(scripts(DESTROY)) == order


@BUILDS
def test_every_step_runs_alone_and_must_succeed(build: dict[str, Any]) -> None:
    assert not [step for step in build["steps"] if "waitFor" in step or "allowFailure" in step]


@BUILDS
def test_every_steps_image_has_an_exact_version(build: dict[str, Any]) -> None:
    for step in build["steps"]:
        assert re.search(r":\d+\.\d+\.\d+(-[a-z]+)?$", step["name"]), step["name"]


def test_terraform_has_one_version_everywhere() -> None:
    [terraform] = blocks("terraform")
    images = {
        on_hub(step["name"])
        for build in (BUILD, DESTROY)
        for step in build["steps"]
        if "terraform -chdir" in step["script"]
    }

    assert images == {f"hashicorp/terraform:{terraform['required_version'].removeprefix('~> ')}"}


def test_the_functions_run_on_the_python_that_checked_them() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    [config] = resource("google_cloudfunctions2_function", "function")["build_config"]
    [version] = re.findall(r"^python:(\d+\.\d+)\.", on_hub(STEPS["check"]["name"]))

    assert config["runtime"] == f"python{version.replace('.', '')}"
    assert project["tool"]["mypy"]["python_version"] == version


def test_every_variable_that_is_given_exists_and_none_that_is_needed_is_missing() -> None:
    variables = {name: body for block in blocks("variable") for name, body in block.items()}
    needed = {name for name, body in variables.items() if "default" not in body}

    assert given(STEPS["plan"]["script"]) == needed | {"commit"}
    for step in ("unprotect", "destroy"):
        assert given(DESTROY_STEPS[step]["script"]) == needed | {"destroy"}
    assert needed | {"commit", "destroy"} <= set(variables)


@BUILDS
def test_every_substitution_is_declared_with_a_meaning_and_used(build: dict[str, Any]) -> None:
    used = set(re.findall(r"\$\{?(_[A-Z_]+)", "".join(map(with_called, scripts(build).values()))))
    used |= {"_HUB"} & {name for step in build["steps"] for name in re.findall(r"\$\{(\w+)\}", step["name"])}
    defaults = {name for name, value in build["substitutions"].items() if value}
    assert set(build["substitutions"]) == used
    assert defaults <= {"_APPLY", "_ADMISSION", "_HUB"}, "somebody's own value"


@pytest.mark.parametrize(
    ("build", "required"), [("cloudbuild.yaml", REQUIRED), ("infra/cloudbuild.destroy.yaml", {*REQUIRED, "_DESTROY"})]
)
def test_the_command_in_the_header_sets_what_is_required(build: str, required: set[str]) -> None:
    command = header(build).partition("gcloud builds submit")[2].partition("\n#\n")[0]
    assert set(re.findall(r"(_[A-Z_]+)=", command)) == required
    declared = (ROOT / build).read_text()
    assert set(re.findall(r'^  (_[A-Z_]+): "" # required', declared, re.MULTILINE)) == required


def test_the_image_goes_to_the_repository_that_terraform_declares() -> None:
    declared = resource("google_artifact_registry_repository", "images")["repository_id"]
    [repository] = re.findall(r'^ *repository="(.*)"$', STEPS["image"]["script"], flags=re.MULTILINE)

    assert repository == f"${{_REGION}}-docker.pkg.dev/${{PROJECT_ID}}/{declared}/relay"
    assert f"--repository {declared} " in STEPS["bill-of-materials"]["script"]


@BUILDS
def test_every_script_stops_at_its_first_error(build: dict[str, Any]) -> None:
    for step in build["steps"]:
        alpine = on_hub(step["name"]).startswith(
            "hashicorp/terraform:"
        )  # it has no bash, and its scripts have no pipes
        first = "#!/bin/sh\nset -eu\n" if alpine else "#!/usr/bin/env bash\nset -euo pipefail\n"
        assert step["script"].startswith(first), step["id"]
        assert not (alpine and re.search(r"[^|][|][^|]", step["script"])), step["id"]


@BUILDS
def test_scripts_get_the_substitutions_and_run_as_the_builds_own_account(build: dict[str, Any]) -> None:
    assert build["options"]["automapSubstitutions"] is True
    assert build["options"]["substitutionOption"] == "ALLOW_LOOSE", "else one that only a script names is refused"
    assert build["serviceAccount"].rpartition("/")[2].partition("@")[0] == "tpu-slice-deployer"


def test_no_script_reads_yaml_but_by_a_parser() -> None:
    ours = {**scripts(BUILD), **scripts(DESTROY)}
    for step, script in ours.items():
        if step not in {"image", "roll-out"}:
            assert not re.search(r"\b(sed|awk|grep)\b", script), step
