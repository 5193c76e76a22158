"""The stand-in for providers, as Terraform finds it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.infra.stand_in.codec import UNKNOWN, fields, message, packed, unpacked
from tests.infra.stand_in.provider import plan

VALUES = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES)
def test_a_value_is_read_as_it_was_written(value: Any) -> None:
    assert unpacked(packed(value)) == value


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"\x82\xa1a\x07\xa1b\x92\xff\xc3", {"a": 7, "b": [-1, True]}),
        (b"\xcd\x01\x00", 256),
        (b"\xd9\x03abc", "abc"),
        (b"\x91\xd4\x00\x00", [UNKNOWN]),
        (b"\xc7\x01\x0c\x80", UNKNOWN),
    ],
)
def test_values_are_read_in_the_short_forms_that_terraform_writes(data: bytes, value: Any) -> None:
    assert unpacked(data) == value


def test_a_message_has_its_fields_by_number() -> None:
    assert message((1, "a"), (5, 1), (20, b"\x01" * 200)) == b"\x0a\x01a\x28\x01\xa2\x01\xc8\x01" + b"\x01" * 200
    assert fields(message((1, "a"), (5, 300), (2, b"b"))) == {1: b"a", 2: b"b"}


BUCKET = """
terraform {
  required_providers {
    google = { source = "hashicorp/google" }
  }
}
resource "google_storage_bucket" "b" {
  name     = "artifacts"
  location = "us-central2"
  %s
}
output "url" {
  value = google_storage_bucket.b.url
}
"""

MEMBER = """
terraform {
  required_providers {
    google = { source = "hashicorp/google" }
  }
}
resource "google_project_service" "api" {
  service = "container.googleapis.com"
}
data "google_project" "project" {
  depends_on = [google_project_service.api]
}
resource "google_container_cluster" "c" {
  name            = "c"
  resource_labels = { project = data.google_project.project.number }
  fleet {
    project = "p"
  }
}
output "membership" {
  value = google_container_cluster.c.fleet[0].membership_id
}
"""

RELEASE = """
terraform {
  required_providers {
    google = { source = "hashicorp/google" }
    helm   = { source = "hashicorp/helm" }
  }
}
ephemeral "google_client_config" "caller" {}
provider "helm" {
  kubernetes = {
    token = ephemeral.google_client_config.caller.access_token
  }
}
resource "helm_release" "r" {
  name  = "kueue"
  chart = "kueue"
}
"""

needs_terraform = [
    pytest.mark.emulators,
    pytest.mark.enable_socket,
    pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not installed"),
]


class TestPlanning:
    """With Terraform."""

    pytestmark = needs_terraform

    def test_what_only_the_cloud_knows_is_not_known(self, tmp_path: Path) -> None:
        (tmp_path / "main.tf").write_text(BUCKET % "")
        found = plan(tmp_path)
        [bucket] = found["resource_changes"]
        assert bucket["change"]["after"]["name"] == "artifacts"
        assert bucket["change"]["after_unknown"]["url"] is True
        assert "value" not in found["planned_values"]["outputs"]["url"]

    def test_what_only_the_cloud_knows_of_a_block_is_not_known(self, tmp_path: Path) -> None:
        (tmp_path / "main.tf").write_text(MEMBER)
        found = plan(tmp_path)
        [cluster] = [change for change in found["resource_changes"] if change["type"] == "google_container_cluster"]
        assert cluster["change"]["after"]["fleet"] == [{"membership_type": None, "project": "p"}]
        assert cluster["change"]["after_unknown"]["fleet"][0]["membership_id"] is True
        assert "value" not in found["planned_values"]["outputs"]["membership"]

    def test_a_data_source_that_waits_for_something_is_read_later(self, tmp_path: Path) -> None:
        (tmp_path / "main.tf").write_text(MEMBER)
        [read] = [change for change in plan(tmp_path)["resource_changes"] if change["mode"] == "data"]
        assert read["change"]["actions"] == ["read"]
        assert read["action_reason"] == "read_because_dependency_pending"

    def test_a_provider_is_configured_by_what_is_ephemeral_of_another_and_no_plan_has_it(self, tmp_path: Path) -> None:
        (tmp_path / "main.tf").write_text(RELEASE)
        found = plan(tmp_path)
        [release] = found["resource_changes"]
        assert release["change"]["after"]["name"] == "kueue"
        assert "ephemeral access_token" not in json.dumps(found)

    @pytest.mark.parametrize(
        ("line", "says"),
        [
            ("locations = 1", "Unsupported argument"),
            ('force_destroy = "always"', "a bool is required"),
            ("versioning {}", 'argument "enabled" is required'),
            ("versioning {\n enabled = true\n }\n versioning {\n enabled = true\n }", "Too many versioning blocks"),
            ("labels = { url = google_storage_bucket.c.url }", "Reference to undeclared resource"),
        ],
    )
    def test_what_the_schema_does_not_allow_is_refused(self, tmp_path: Path, line: str, says: str) -> None:
        (tmp_path / "main.tf").write_text(BUCKET % line)
        with pytest.raises(AssertionError, match=says):
            plan(tmp_path)
