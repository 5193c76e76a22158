import signal
import threading

import pytest

from tpu_standins.interrupts import orderly_end, uninterrupted


def test_ctrl_c_waits_for_the_end_of_the_step() -> None:
    steps = []

    def interrupted() -> None:
        with orderly_end():
            with uninterrupted():
                signal.raise_signal(signal.SIGINT)
                steps.append("finished")
            steps.append("went on")

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert steps == ["finished"]


def test_a_request_to_end_waits_for_the_end_of_the_step_and_then_unwinds() -> None:
    steps = []

    def ended() -> None:
        with orderly_end():
            try:
                with uninterrupted():
                    signal.raise_signal(signal.SIGTERM)
                    steps.append("finished")
                steps.append("went on")
            finally:
                steps.append("unwound")

    with pytest.raises(SystemExit) as end:
        ended()
    assert (end.value.code, steps) == (143, ["finished", "unwound"])


def test_ctrl_c_ends_what_a_shell_started_in_the_background() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with pytest.raises(KeyboardInterrupt), orderly_end():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


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
