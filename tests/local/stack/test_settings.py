from pathlib import Path

import pytest

from infra.local.addresses import Addresses
from infra.local.plan import Plan
from infra.local.settings import checked, file_of
from infra.local.stack import allotted
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.ports.errors import Permanent

pytestmark = pytest.mark.enable_socket  # free ports are found by binding them
DEMO = ClusterId("demo")


@pytest.fixture
def addresses(tmp_path: Path) -> Addresses:
    return allotted(Plan(state=tmp_path), ("receive",))


def test_the_settings_are_those_of_the_cluster_that_is_simulated(addresses: Addresses) -> None:
    document = checked(file_of(addresses).read_text(), DEMO)
    assert document["path"] == addresses.cluster_path
    assert document["limits"]["backoff"]["STOCKOUT"]["initial"] == 5


def test_a_slip_in_the_settings_is_named_before_anything_is_written() -> None:
    with pytest.raises(Permanent, match=r"limits\.demand_ttl: Invalid value: 'soon'"):
        checked("path: projects/p/locations/l/clusters/c\nlimits: {demand_ttl: soon}", DEMO)
