"""JobSets on a ladder while spot is out of stock, on the local stack: one by one, and a gang that moves whole."""

from __future__ import annotations

import pytest

from tests.local.stack.capacity.site import GANG, LADDER, Site, a_jobset, end, run

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket, pytest.mark.real]

SLICES = 4


def test_who_finds_no_spot_goes_on_to_flex_start_and_so_does_who_comes_later(site: Site) -> None:
    own, names = site.cluster.within(LADDER), ("first", "second", "third")
    with site.short_of("spot", "tpu-(first|second|third)-.*"):
        own.create([a_jobset("first")])
        own.until(lambda: run(own, "first"))
        own.create([a_jobset("second"), a_jobset("third")])
        own.until(lambda: run(own, "second") and run(own, "third"))
        assert [site.stands(name)["flex-start"] for name in names] == [1, 1, 1]
    own.until(lambda: any("now asked as flex-start" in each["message"] for each in own.items("events")))
    for name in names:
        end(own, name)
    own.until(lambda: not any(site.stands(name) for name in names))


def test_a_gang_of_which_one_slice_is_short_moves_whole(site: Site) -> None:
    own = site.cluster.within(GANG)
    with site.short_of("spot", "tpu-gang-3-.*"):
        own.create([a_jobset("gang", SLICES, **{"tpu-provisioner.cloud.google.com/gang": "all"})])
        own.until(lambda: run(own, "gang", SLICES))
        own.until(lambda: sum(site.stands("gang").values()) == SLICES)
        assert site.stands("gang")["on-demand"], "a slice that was to go and got its Job after all may be of spot"
    assert own.get("jobsets", "gang")["status"].get("restarts", 0) == 0, "no pod ran before all slices stood"
    end(own, "gang")
    own.until(lambda: not site.stands("gang"))
