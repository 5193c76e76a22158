"""How many decisions a core makes in a second: recorded, without a floor."""

from __future__ import annotations

import time
from collections.abc import Iterator

from tests.bench.measures import RUNS, Measure, measure
from tests.builders import NOW, a_jobset, a_record, an_occupant, heard, settings, some_hosts
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.observations import Absent, Observed, Running
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.reconciling.case import Known
from tpu_slices.domain.reconciling.decide import decide
from tpu_slices.domain.records.slices import SliceRecord

EACH = 2_000
_OWN = a_jobset()
_WAITS = (a_record(), Absent(), heard(workloads={_OWN.owner.uid: _OWN}, slots={1: 0}))
_RUNS = (
    a_record(
        phase=Phase.READY,
        reason=Reason.READY,
        create_requested_at=NOW,
        hosts=some_hosts(occupants=(an_occupant(),)),
    ),
    Running(None),
    heard(workloads={_OWN.owner.uid: _OWN}),
)
_ENDED = (*_RUNS[:2], heard(workloads={_OWN.owner.uid: a_jobset(state=WorkloadState.COMPLETED)}))
CASES: dict[str, tuple[SliceRecord, Absent | Running, Known]] = {
    "create": _WAITS,
    "stay": _RUNS,
    "close hosts": _ENDED,
}


def rows() -> Iterator[Measure]:
    """Yield decisions per second of processor time, by what is decided."""
    for name, (record, seen, known) in CASES.items():
        yield measure(f"decide: {name}", "per second", [_per_second(record, seen, known) for _ in range(RUNS)])


def _per_second(record: SliceRecord, seen: Absent | Running, known: Known) -> float:
    pools, of_cluster = Observed(seen), settings()
    began = time.process_time()
    for _ in range(EACH):
        decide(record, pools, NOW, of_cluster, known)
    return EACH / (time.process_time() - began)
