"""What Compute Engine refuses of setMetadata on an instance."""

from http import HTTPStatus

from tpu_standins.cloud.rules import OURS, Covered
from tpu_standins.compute.messages import fingerprint
from tpu_standins.compute.refusals.rules import BUSY, Ask, Rule, covers, invalid_value
from tpu_standins.compute.refusals.templates import metadata_problem

_COVERED: Covered = {"fingerprint": {}, "kind": {}, "items": {"key": {}, "value": {}}}


def _no_vm(ask: Ask) -> str | None:
    instance = ask.state.instances.get(ask.path)
    return None if instance and instance.vm else f"The resource '{ask.path}' was not found"


def _stale(ask: Ask) -> str | None:
    vm = ask.state.instances[ask.path].vm
    current = fingerprint(vm.metadata) if vm else ""
    if ask.body.fingerprint == current:
        return None
    return "Supplied fingerprint does not match current metadata fingerprint."


def _bad_items(ask: Ask) -> str | None:
    why = metadata_problem([(item.key, item.value) for item in ask.body.items])
    return invalid_value("metadata.items", "…", why) if why else None


SET = (
    covers(_COVERED),
    Rule(
        name="metadata-without-vm",
        code=HTTPStatus.NOT_FOUND,
        reason="notFound",
        fact="[py-gce ManagedInstance.instance] the URL can exist before the instance; it is found once it exists",
        words="mattes/gce-deploy-action#1, by analogy",
        check=_no_vm,
    ),
    BUSY,
    Rule(
        name="metadata-fingerprint",
        code=HTTPStatus.PRECONDITION_FAILED,
        reason="conditionNotMet",
        fact="[py-gce Metadata.fingerprint] an up-to-date one must always be given, else 412 conditionNotMet",
        words="hashicorp/terraform-provider-google#221",
        check=_stale,
    ),
    Rule(
        name="metadata-items",
        fact="[py-gce Items, doc:metadata/setting-custom-metadata] keys, 256 KiB a value, 512 KB in all",
        words=OURS,
        check=_bad_items,
    ),
)
