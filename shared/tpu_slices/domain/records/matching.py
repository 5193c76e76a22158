"""By what a claim that waits for a slice and a slice that goes find each other: texts that are equal."""

from __future__ import annotations

from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import ClusterId, SliceSpec
from tpu_slices.domain.records.slices import SliceRecord


def wants(record: SliceRecord) -> str | None:
    """Return what a claim waits for; None: it has a slice, or one was requested for it, or it waits for none.

    | the claim                                                            | waits for            |
    |----------------------------------------------------------------------|----------------------|
    | is not needed, or not known to be possible; is held; is a node group | nothing              |
    | has a slice, or one was requested for it                             | nothing              |
    | else                                                                 | one for its request  |
    """
    claim, spec = record.claim, record.spec
    if record.unclaimed or not record.wanted or record.hold or record.owner.kind.declares:
        return None
    if record.current.create_requested_at is not None or spec is None or claim.refusal is not None:
        return None
    return _request(record.cluster, record.owner.namespace, spec)


def offers(record: SliceRecord) -> str | None:
    """Return for what a slice that goes could serve; None: for nothing.

    | the slice                                                                      | could serve          |
    |--------------------------------------------------------------------------------|----------------------|
    | stays; does not stand any more, or its deletion was requested                  | nobody               |
    | is held, or released by an operator; is that of a node group, or was adopted   | nobody               |
    | has hosts that leave by themselves, or that are labelled for one Job           | nobody               |
    | was let go since something is wrong with it, or releases are stopped           | nobody               |
    | else                                                                           | for what it was made |
    """
    current, made_as = record.current, record.made_as
    if not record.goes or record.phase is Phase.GONE or current.create_requested_at is None or made_as is None:
        return None
    if current.delete_requested_at is not None or record.hold or record.release_requested or current.number == 0:
        return None
    if record.owner.kind.declares or made_as.exclusive_nodes or made_as.capacity.max_run_duration is not None:
        return None
    if (record.unclaimed and not record.fits) or record.reason is Reason.RELEASES_STOPPED:
        return None
    return _request(record.cluster, record.owner.namespace, made_as)


def _request(cluster: ClusterId, namespace: str, spec: SliceSpec) -> str:
    return f"{cluster} {namespace} {spec.fingerprint}"
