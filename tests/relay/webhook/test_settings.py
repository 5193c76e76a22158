"""The webhook's settings."""

from __future__ import annotations

from datetime import timedelta

import pytest

from relay.webhook.authorities import LIFE
from relay.webhook.placing import Options
from relay.webhook.settings import Settings
from tpu_slices.domain.model.clusters import PodsOf
from tpu_slices.domain.model.gangs import Gangs


def test_nothing_needs_to_be_set() -> None:
    settings = Settings.read({})
    assert settings.address == ("0.0.0.0", 10250)
    assert settings.names == ("webhook.tpu-slice-provisioner.svc",)
    assert settings.options == Options()
    assert settings.life == LIFE


def test_everything_can_be_set() -> None:
    settings = Settings.read(
        {
            "NAMESPACE": "here",
            "HOST": "127.0.0.1",
            "PORT": "0",
            "NAMES": "127.0.0.1, webhook.here.svc",
            "STRIP_SPOT_AND_RESERVATION": "true",
            "LOCATION_HINT": "cell-a",
            "SERVE": "Pod, Deployment",
            "GANGS": "multislice",
            "AUTHORITY_SECONDS": "60",
            "DRAIN_SECONDS": "0",
            "VERSION": "1",
            "GOOGLE_CLOUD_PROJECT": "p",
        }
    )
    assert (settings.namespace, settings.address) == ("here", ("127.0.0.1", 0))
    assert settings.names == ("127.0.0.1", "webhook.here.svc")
    assert settings.options == Options(
        strips_capacity=True,
        location_hint="cell-a",
        serve=(PodsOf.POD, PodsOf.DEPLOYMENT),
        gangs=Gangs.MULTISLICE,
    )
    assert (settings.life, settings.drain_seconds) == (timedelta(minutes=1), 0)
    assert (settings.version, settings.project) == ("1", "p")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("PORT", "65536"),
        ("PORT", "x"),
        ("AUTHORITY_SECONDS", "9"),
        ("DRAIN_SECONDS", "-1"),
        ("STRIP_SPOT_AND_RESERVATION", "yes"),
        ("LOCATION_HINT", "cell a"),
        ("SERVE", "pods"),
        ("GANGS", "all"),
        ("PORT", "9" * 5000),
    ],
)
def test_what_cannot_be_used_is_named(name: str, text: str) -> None:
    with pytest.raises(ValueError, match=name):
        Settings.read({name: text})
