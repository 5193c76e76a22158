"""Refusals of CreateNodePool for pools of flex-start, in table order."""

from google.cloud.container_v1 import NodePoolAutoscaling, NodePoolUpdateStrategy, ReservationAffinity

from tpu_standins.cloud.rules import OURS
from tpu_standins.gke.codes import Code
from tpu_standins.gke.rules import Ask, Rule

_SHORTEST, _LONGEST = 600, 604_800
"""Seconds: 10 minutes to 7 days [CA autoprovisioning/injection.go]."""
_WITHOUT = ("ct4p-", "ct5l-")
"""Machine types without flex-start [CA dwsDisabled]."""
_ANYWHERE = NodePoolAutoscaling.LocationPolicy.ANY


def _machine(ask: Ask) -> str | None:
    kind = ask.machine.name
    without = ask.spec.config.flex_start and kind.startswith(_WITHOUT)
    return f"Flex-start is not supported for machine type {kind}." if without else None


def _size(ask: Ask) -> str | None:
    scaling = ask.spec.autoscaling
    if not ask.spec.config.flex_start:
        return None
    if ask.spec.initial_node_count or not scaling.enabled or scaling.min_node_count or not scaling.max_node_count:
        return "Flex-start requires autoscaling from 0 nodes, and no initial nodes."
    return None if scaling.location_policy == _ANYWHERE else "Flex-start requires the location policy ANY."


def _repair(ask: Ask) -> str | None:
    repairs = ask.spec.config.flex_start and ("management" not in ask.spec or ask.spec.management.auto_repair)
    return "Flex-start requires auto_repair to be disabled." if repairs else None


def _upgrades(ask: Ask) -> str | None:
    short_lived = ask.spec.upgrade_settings.strategy == NodePoolUpdateStrategy.SHORT_LIVED
    if short_lived == ask.spec.config.flex_start:
        return None
    return "The upgrade strategy SHORT_LIVED is that of flex-start and queued provisioning, and their only one."


def _paid_otherwise(ask: Ask) -> str | None:
    config = ask.spec.config
    none = config.reservation_affinity.consume_reservation_type == ReservationAffinity.Type.NO_RESERVATION
    if not config.flex_start or (none and not config.spot and not config.preemptible):
        return None
    return "Flex-start requires reservation affinity to be set to none, and excludes spot and preemptible."


def _run_duration(ask: Ask) -> str | None:
    config = ask.spec.config
    seconds = config.max_run_duration.total_seconds() if "max_run_duration" in config else None
    if not config.flex_start:
        return None if seconds is None else "max_run_duration is implemented by the local GKE for flex-start only."
    if seconds is None:
        return "Required field 'resource.requestedRunDuration' not specified"
    if _SHORTEST <= seconds <= _LONGEST:
        return None
    return f"MaxRunDuration is not within the allowed range (10 minutes - 7 days). Got {seconds:.0f} seconds."


FLEX_RULES = (
    Rule(
        name="flex-start-machine",
        code=Code.INVALID_ARGUMENT,
        fact="[CA machinetypes, dwsDisabled]",
        words=OURS,
        check=_machine,
    ),
    Rule(name="flex-start-size", code=Code.INVALID_ARGUMENT, fact="[doc:concepts/dws]", words=OURS, check=_size),
    Rule(
        name="flex-start-repair",
        code=Code.INVALID_ARGUMENT,
        fact="[doc:concepts/dws, xpk]",
        words=OURS,
        check=_repair,
    ),
    Rule(
        name="flex-start-upgrades",
        code=Code.INVALID_ARGUMENT,
        fact="[CA injection.go] SHORT_LIVED is the only strategy of such pools",
        words=OURS,
        check=_upgrades,
    ),
    Rule(
        name="flex-start-paid-otherwise",
        code=Code.INVALID_ARGUMENT,
        fact="[doc:concepts/dws, CA injection.go]",
        words=OURS,
        check=_paid_otherwise,
    ),
    Rule(
        name="flex-start-run-duration",
        code=Code.INVALID_ARGUMENT,
        fact="[py-gce Scheduling, CA injection.go]",
        words="Compute Engine's for a missing one, else the cluster autoscaler's",
        check=_run_duration,
    ),
)
