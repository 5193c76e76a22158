"""Which requests a fault strikes, and how often."""

from typing import Any

import pytest

from tpu_standins.proxy.faults import Asked, Fault, NotAFault, fault, in_force, shown, struck


def asked(path: str = "/api/v1/pods", method: str = "GET", authorization: str = "", **query: str) -> Asked:
    return Asked(method=method, path=path, query=query, authorization=authorization)


def codes(*requests: Asked, now: float = 0, **given: Any) -> list[int]:
    """Inject a 503; return the code that each request gets; 200: the server's own response."""
    faults: tuple[Fault, ...] = (fault({"code": 503, **given}, now=0),)
    found = []
    for each in requests:
        faults, one = struck(in_force(faults, now), each)
        found.append(one.code if one else 200)
    return found


def test_only_requests_for_what_is_named_meet_it() -> None:
    assert codes(asked("/api/v1/pods"), asked("/api/v1/nodes"), resource="pods") == [503, 200]


def test_lists_and_watches_and_methods_are_told_apart() -> None:
    requests = asked(), asked(watch="true"), asked(method="PATCH")
    assert codes(*requests, verb="list") == [503, 200, 503]
    assert codes(*requests, verb="watch") == [200, 503, 200]
    assert codes(*requests, verb="PATCH") == [200, 200, 503]


def test_only_later_pages_of_a_list_meet_what_is_for_them() -> None:
    assert codes(asked(limit="5"), asked(**{"continue": "abc"}), continued=True) == [200, 503]


def test_who_is_spared_is_known_by_the_authorization() -> None:
    requests = asked(authorization="Bearer old"), asked(authorization="Bearer new")
    assert codes(*requests, unless="Bearer new") == [503, 200]


def test_a_share_of_the_requests_is_struck_evenly() -> None:
    assert codes(*[asked()] * 6, share=0.5) == [200, 503, 200, 503, 200, 503]


def test_it_is_worn_out_by_the_requests_it_struck() -> None:
    assert codes(*[asked()] * 6, share=0.5, times=1) == [200, 503, 200, 200, 200, 200]


def test_it_ends_when_its_time_is_over() -> None:
    assert codes(asked(), now=59, **{"for": 60}) == [503]
    assert codes(asked(), now=60, **{"for": 60}) == [200]


def test_the_first_of_two_that_meets_a_request_strikes_it_and_the_other_waits() -> None:
    faults: tuple[Fault, ...] = (fault({"code": 503, "times": 1}, 0), fault({"code": 429}, 0))
    faults, first = struck(faults, asked())
    faults, second = struck(faults, asked())
    assert [one and one.code for one in (first, second)] == [503, 429]


def test_what_is_in_force_is_shown_with_what_is_left_of_its_time() -> None:
    (one,) = shown((fault({"code": 503, "for": 60}, now=100),), now=130)
    assert (one["code"], one["for"]) == (503, 30)


@pytest.mark.parametrize("field", ["colour", "met", "until"])
def test_a_field_that_is_not_to_be_wished_is_refused(field: str) -> None:
    with pytest.raises(NotAFault, match=f'no field "{field}"'):
        fault({field: 1}, now=0)
