"""What was wrong in the environments that this one replaces, and is not repeated in the infrastructure.

Their retries that end well after they failed, their plans that are not what is applied, and their different values in
provision and destroy are matters of the builds.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from infra.environments.training.catalogue import FILE
from tests.infra.environments.evaluation import TRAINING
from tests.infra.environments.planned import Plan, plan_of, prepared
from tests.infra.sources import ENVIRONMENTS
from tests.infra.stand_in.provider import plan

ROOT = "infra/environments/training/infrastructure"
CATALOGUE = json.loads(FILE.read_text())

needs_terraform = [
    pytest.mark.emulators,
    pytest.mark.enable_socket,
    pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not installed"),
]


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    pools = {
        "large": {"type": "v4-512"},
        "host": {"type": "v4-8"},
        "large-scaled": {"type": "v4-512", "autoscaling": True},
        "host-scaled": {"type": "v4-8", "autoscaling": True},
        "spot": {"type": "v4-8", "capacity": "spot"},
    }
    return plan_of(tmp_path_factory.mktemp("planned"), tpu_pools=pools, force_destroy=True)


class TestPlanned:
    """Each by Terraform itself."""

    pytestmark = needs_terraform

    def test_the_number_of_hosts_is_not_the_chips_of_a_host(self, planned: Plan) -> None:
        counts = {name: pool["node_count"] for name, pool in planned.pools().items() if not pool["autoscaling"]}
        assert counts == {"large-0": 64, "host-0": 1, "spot-0": 1}

    def test_autoscaling_goes_up_to_the_whole_slice_for_one_host_and_for_many(self, planned: Plan) -> None:
        """By the number of the pool's zone: by the total number, GKE refuses slices of several hosts."""
        scaled = {name: pool["autoscaling"][0] for name, pool in planned.pools().items() if pool["autoscaling"]}
        assert {name: (each["min_node_count"], each["max_node_count"]) for name, each in scaled.items()} == {
            "large-scaled-0": (0, 64),
            "host-scaled-0": (0, 1),
        }
        assert not any(each["total_max_node_count"] for each in scaled.values())

    def test_a_single_host_has_no_placement_policy(self, planned: Plan) -> None:
        placed = {name for name, pool in planned.pools().items() if pool["placement_policy"]}
        assert placed == {"large-0", "large-scaled-0"}

    def test_a_bucket_that_is_not_empty_can_be_destroyed(self, planned: Plan) -> None:
        assert planned.resources["google_storage_bucket.artifacts"]["force_destroy"] is True

    def test_a_taint_has_its_value(self, planned: Plan) -> None:
        [taint] = planned.pools()["spot-0"]["node_config"][0]["taint"]
        assert taint == {"key": "cloud.google.com/gke-spot", "value": "true", "effect": "NO_SCHEDULE"}

    def test_flavors_have_the_taints_that_workloads_must_tolerate_and_cpu_nodes_a_label(self, planned: Plan) -> None:
        flavors = planned.outputs["flavors"]
        assert all(flavor["node_taints"] for flavor in flavors.values())
        assert planned.outputs["cpu_pool"]["node_labels"] == {"default-node-pool": "true"}

    def test_flavors_are_only_those_of_slices_that_there_are(self, planned: Plan) -> None:
        assert len(planned.outputs["flavors"]) == 3

    @pytest.mark.parametrize("typo", ["managment", "enable_enable_api_server_logs"])
    def test_a_misspelt_setting_is_refused(self, tmp_path: Path, typo: str) -> None:
        """Two typing errors in a module took settings away, and nobody was told."""
        root = prepared(tmp_path)
        cluster = (TRAINING / "cluster.tf").read_text()
        (root / "cluster.tf").write_text(cluster.replace("  management {", f"  {typo} {{"))
        with pytest.raises(AssertionError, match="Unsupported block type"):
            plan(root)


def test_no_topology_disagrees_with_its_chips() -> None:
    """One table has v5p-3072 as 4x12x16, which is half of it."""
    assert CATALOGUE["types"]["v5p-3072"]["topology"] == "8x12x16"


def test_no_service_account_of_a_build_is_owner_of_the_project() -> None:
    assert "roles/owner" not in json.dumps(
        [block for file in ENVIRONMENTS[ROOT].values() for block in file.get("resource", [])]
    )


def test_no_machine_type_or_topology_is_written_beside_the_catalogue() -> None:
    """A second table would disagree with the first one some day."""
    written = "".join(path.read_text() for path in TRAINING.glob("*.tf") if not path.name.startswith("variables"))
    assert not [name for name in CATALOGUE["machines"] if name in written]
