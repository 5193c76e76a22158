"""Whether a plan of the infrastructure may be applied."""

from infra.environments import plans
from infra.environments.plans import CLUSTER, Json
from infra.environments.substitutions import Refused

BUCKET = "google_storage_bucket.artifacts"


def judge(plan: Json, number_of_chips: str) -> None:
    """Raise Refused if the chips are not as many as was said, or if the plan takes cluster or bucket away."""
    chips = plan["planned_values"]["outputs"].get("chips", {}).get("value")
    if number_of_chips and number_of_chips != str(chips):
        raise Refused(
            f"_NUM_OF_CHIPS is {number_of_chips}, but the static slices have {chips} chips. "
            "Nobody need count them: leave it out, or see whether the slices are those that are meant."
        )
    plans.keeps(plan, {CLUSTER, BUCKET})
