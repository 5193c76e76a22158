"""What is kept of a text that has a bootstrap token."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpu_slices.app.secrets import redacted

TOKEN = "abcdef.0123456789abcdef"
tokens = st.from_regex(r"[a-z0-9]{6}\.[a-z0-9]{16}", fullmatch=True)


@given(tokens, st.text('{}": ,', max_size=10), st.text('{}": ,', max_size=10))
def test_a_token_is_taken_out_of_whatever_is_round_it(token: str, before: str, after: str) -> None:
    assert redacted(f"{before}{token}{after}") == f"{before}[token]{after}"


@given(tokens, st.text(max_size=40))
def test_a_token_within_base64_is_taken_out(token: str, beside: str) -> None:
    data = base64.b64encode(json.dumps({"token": token, "beside": beside}).encode()).decode()
    assert redacted(f"{{'data': '{data}'}}") == "{'data': '[token]'}"


@pytest.mark.parametrize(
    "text",
    ["", "google.com/tpu-slice-id", "a.b", f"x{TOKEN}", f"{TOKEN}x", "Zm9v" * 20, "settings: zone: must be a name"],
)
def test_other_texts_stay(text: str) -> None:
    assert redacted(text) == text


def test_where_a_token_is_spoken_of_what_is_round_it_does_not_hide_it() -> None:
    assert redacted(f'"token": "x{TOKEN}{TOKEN}"') == '"token": "x[token][token]"'


def test_base64_of_urls_counts_too() -> None:
    data = base64.urlsafe_b64encode(f'{{"token": "{TOKEN}", "x": "???>>>"}}'.encode()).decode()
    assert redacted(data) == "[token]"
