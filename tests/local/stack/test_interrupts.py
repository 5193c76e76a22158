import signal
import threading

import pytest

from infra.local.interrupts import orderly_end, uninterrupted


def test_ctrl_c_waits_for_the_end_of_the_step() -> None:
    steps = []
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012 -- what runs before it is raised is the point
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            steps.append("finished")
        steps.append("went on")
    assert steps == ["finished"]


def test_a_request_to_end_unwinds() -> None:
    unwound = []
    with pytest.raises(SystemExit) as ended, orderly_end():
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            unwound.append("finally")
    assert (ended.value.code, unwound) == (143, ["finally"])


def test_a_request_to_end_waits_for_the_end_of_the_step_too() -> None:
    steps = []
    with pytest.raises(SystemExit), orderly_end(), uninterrupted():
        signal.raise_signal(signal.SIGTERM)
        steps.append("finished")
    assert steps == ["finished"]


def test_handlers_are_as_before_afterwards() -> None:
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    with orderly_end(), uninterrupted():
        assert signal.getsignal(signal.SIGINT) is not before[signal.SIGINT]
    assert {each: signal.getsignal(each) for each in before} == before


def test_another_thread_may_hold_what_never_reaches_it() -> None:
    done = []

    def step() -> None:
        with uninterrupted():
            done.append("finished")

    thread = threading.Thread(target=step)
    thread.start()
    thread.join()
    assert done == ["finished"]
