"""How tests are run here: the plugins, and how many examples of each property are tried."""

from typing import Any

from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.order", "tests.suites", "tpu_standins.testing.emulators", "tpu_standins.testing.leaks"]

FOR_LONG: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
"""For as long as it takes, as a busy machine may take long for one example."""
settings.register_profile("fast", max_examples=10, database=None, **FOR_LONG)
settings.register_profile("gate", max_examples=60, **FOR_LONG)
settings.register_profile("deep", max_examples=600, **FOR_LONG)
settings.load_profile("gate")
