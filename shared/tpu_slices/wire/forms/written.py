"""What is common to the schemas of settings: how fields, times and chips are written, and what must be of them."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from tpu_slices.domain.model.texts import as_duration
from tpu_slices.wire.documents import Fields

Duration = Annotated[timedelta, BeforeValidator(as_duration), Field(gt=timedelta(0), le=timedelta(days=365))]


def setting(valid: str, **bounds: Any) -> Any:
    """Return an optional field; `valid` completes the error "... must be ..."."""
    return Field(default=None, description=valid, **bounds)


def chips_setting() -> Any:
    return setting("a whole number of chips, at most a billion, or omitted for no limit", ge=1, le=1_000_000_000)


def dollars_setting() -> Any:
    return setting("US dollars an hour, such as 300, or omitted for no limit", gt=0, le=1_000_000, strict=False)


def zone_setting() -> Any:
    return setting("the name of a zone, such as us-central2-b")


def time_setting() -> Any:
    return setting("seconds, or text such as 90s, 15m, 2h or 30d")


class WrittenForm(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)

    def given(self) -> Fields:
        """Return the fields that are set and not null."""
        return {name: value for name in self.model_fields_set if (value := getattr(self, name)) is not None}


def fields_of(form: type[WrittenForm]) -> str:
    """Return the names of the fields of a map, as they are written."""
    return ", ".join(field.alias or name for name, field in form.model_fields.items())
