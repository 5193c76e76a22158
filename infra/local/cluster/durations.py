"""Ages and durations in the format of `kubectl get` (pure)."""

from datetime import UTC, datetime


def human_duration(seconds: float) -> str:
    """Format a duration as `k8s.io/apimachinery/pkg/util/duration`.HumanDuration does: 59s, 3m4s, 2h, 5d3h, 2y."""
    total = int(seconds)
    if total < 0:
        return "<invalid>" if total < -1 else "0s"
    minutes, hours, days = total // 60, total // 3600, total // 86400
    if total < 120:
        return f"{total}s"
    if minutes < 10:
        return f"{minutes}m" + (f"{total % 60}s" if total % 60 else "")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return f"{hours}h" + (f"{minutes % 60}m" if minutes % 60 else "")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return f"{days}d" + (f"{hours % 24}h" if hours % 24 else "")
    if days < 730:
        return f"{days}d"
    years, rest = divmod(days, 365)
    return f"{years}y{rest}d" if years < 8 and rest else f"{years}y"


def since(start: str | None, now: datetime, missing: str = "<unknown>") -> str:
    if not start:
        return missing
    return human_duration((now - moment(start)).total_seconds())


def moment(text: str) -> datetime:
    """Parse a metav1.Time or MicroTime."""
    return datetime.fromisoformat(text).astimezone(UTC)
