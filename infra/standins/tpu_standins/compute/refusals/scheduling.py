"""What Compute Engine refuses of how a template's VMs are provisioned, for TPU machine types."""

from tpu_standins.cloud.rules import OURS
from tpu_standins.compute.refusals.rules import Ask, Rule, invalid_value, limit, missing

_AT = "resource.properties.scheduling"
_AFFINITY = "resource.properties.reservationAffinity"
RESERVATION_KEY = "compute.googleapis.com/reservation-name"


def _model(ask: Ask) -> str:
    return ask.body.properties.scheduling.provisioning_model or "STANDARD"


def _flex_start(ask: Ask) -> str | None:
    flex = _model(ask) == "FLEX_START" or ask.body.properties.scheduling.preemptible
    return "FLEX_START and preemptible VMs are not implemented by the local Compute Engine." if flex else None


def _migrates(ask: Ask) -> str | None:
    given = ask.body.properties.scheduling.on_host_maintenance
    if given == "TERMINATE" or (not given and _model(ask) == "SPOT"):
        return None
    why = "This machine type only supports on_host_maintenance = OnHostMaintenance.TERMINATE."
    return invalid_value(f"{_AT}.onHostMaintenance", given, why)


def _standard_with_action(ask: Ask) -> str | None:
    action = ask.body.properties.scheduling.instance_termination_action
    if not action or _model(ask) != "STANDARD":
        return None
    why = (
        "You cannot specify a termination action for a VM instance that has the standard provisioning model (default). "
        "To use instance termination action, the VM instance must use the Spot or Reservation-Bound provisioning model."
    )
    return invalid_value(f"{_AT}.instanceTerminationAction", action, why)


def _bound_without_delete(ask: Ask) -> str | None:
    action = ask.body.properties.scheduling.instance_termination_action
    if _model(ask) != "RESERVATION_BOUND" or action == "DELETE":
        return None
    return invalid_value(f"{_AT}.instanceTerminationAction", action, "Reservation-bound VMs must be deleted.")


def _restarts(ask: Ask) -> str | None:
    restarts = ask.body.properties.scheduling.automatic_restart
    if not restarts or _model(ask) == "STANDARD":
        return None
    return invalid_value(f"{_AT}.automaticRestart", "true", "Only standard VMs can be restarted automatically.")


def _bound_to_nothing(ask: Ask) -> str | None:
    kind = ask.body.properties.reservation_affinity.consume_reservation_type
    if _model(ask) != "RESERVATION_BOUND" or kind == "SPECIFIC_RESERVATION":
        return None
    return invalid_value(f"{_AFFINITY}.consumeReservationType", kind, "RESERVATION_BOUND needs a specific reservation.")


def _unnamed_reservation(ask: Ask) -> str | None:
    affinity = ask.body.properties.reservation_affinity
    if affinity.consume_reservation_type != "SPECIFIC_RESERVATION":
        return None
    if affinity.key != RESERVATION_KEY:
        return invalid_value(f"{_AFFINITY}.key", affinity.key, f"Must be {RESERVATION_KEY}.")
    return None if len(affinity.values) == 1 else missing(f"{_AFFINITY}.values")


SCHEDULING_RULES = (
    limit(_flex_start, "model-not-covered"),
    Rule(
        name="scheduling-migrates",
        fact="[doc:instances/live-migration-process] TPUs do not migrate; [py-gce] the default is to, but for spot",
        words="GoogleCloudPlatform/cloud-image-tests#346",
        check=_migrates,
    ),
    Rule(
        name="scheduling-standard-action",
        fact="GoogleCloudPlatform/cluster-toolkit#4435",
        words="GoogleCloudPlatform/cluster-toolkit#4435",
        check=_standard_with_action,
    ),
    Rule(
        name="scheduling-bound-action",
        fact="[py-gce, tpuop] VMs that are bound to a reservation end with it: the action is DELETE",
        words=OURS,
        check=_bound_without_delete,
    ),
    Rule(
        name="scheduling-restart",
        fact="[py-gce Scheduling.automatic_restart] for standard instances only",
        words=OURS,
        check=_restarts,
    ),
    Rule(
        name="reservation-bound",
        fact="[py-gce ReservationAffinity] RESERVATION_BOUND consumes a specific reservation",
        words=OURS,
        check=_bound_to_nothing,
    ),
    Rule(
        name="reservation-unnamed",
        fact="[py-gce ReservationAffinity.key] a specific reservation is named by the key reservation-name",
        words=OURS,
        check=_unnamed_reservation,
    ),
)
