"""The schema of what a cluster's settings say of capacity that nobody uses at the moment."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import BeforeValidator, Field

from tpu_slices.domain.model.capacity import Across, Advice, NamespaceSettings, Warm
from tpu_slices.domain.model.texts import as_duration
from tpu_slices.wire.documents import Fields, native
from tpu_slices.wire.forms.ladders import Name
from tpu_slices.wire.forms.written import WrittenForm, chips_setting, dollars_setting, fields_of, setting

_Lasts = Annotated[timedelta, BeforeValidator(as_duration), Field(ge=timedelta(0), le=timedelta(days=7))]
_Across = Annotated[Across, BeforeValidator(lambda value: Across(str(value)))]

AdviceOf = Annotated[Advice, BeforeValidator(lambda value: Advice.OFF if value is False else Advice(str(value)))]
"""`off` without quotes is false in YAML."""


class WarmForm(WrittenForm):
    for_: _Lasts = Field(alias="for", description="seconds, or text such as 15m or 2h, at most 7d; 0 keeps none")
    most_chips: int | None = chips_setting()
    most_usd_an_hour: float | None = dollars_setting()
    across: _Across | None = setting(f"one of {', '.join(Across)}")


class NamespaceForm(WrittenForm):
    ladder: Name | None = setting("the name of one of the ladders")
    warm: WarmForm | None = setting(f"a map of {fields_of(WarmForm)}")


def warm_of(written: WarmForm | None) -> Warm | None:
    if written is None:
        return None
    given = {name: value for name, value in written.given().items() if name != "for_"}
    return Warm(lasts=written.for_, **given)


def namespace_of(written: NamespaceForm) -> NamespaceSettings:
    return NamespaceSettings(ladder=written.ladder, warm=warm_of(written.warm))


def written_warm(warm: Warm | None) -> Fields | None:
    """Return the setting as it is written."""
    if warm is None:
        return None
    document: Fields = native(warm)
    return {"for" if name == "lasts" else name: value for name, value in document.items()}


def written_namespace(own: NamespaceSettings) -> Fields:
    return {"ladder": own.ladder, "warm": written_warm(own.warm)}
