"""Manners are kept: never more than two requests a second, nor more octets a minute, whatever is asked for."""

import itertools
import random
from collections import deque

import pytest

from trifecta.design import manners
from trifecta.design.manners import MINUTE_NS, TO_OTHERS, Manners
from trifecta.lab.engine import Stopped
from trifecta.workloads.far.rate_limiter import RateLimiter

S = 1_000_000_000


class Clock:
    """Time that passes when somebody sleeps."""

    def __init__(self):
        self.now_ns = 1_000 * S

    def __call__(self):
        return self.now_ns

    def sleep(self, seconds):
        assert 0 < seconds <= 0.1
        self.now_ns += max(1, round(seconds * 1e9))


def keeper(own=TO_OTHERS, stop=lambda: False):
    clock = Clock()
    return RateLimiter(own, stop, now_ns=clock, sleep=clock.sleep), clock


def test_the_first_request_waits_as_if_one_had_just_been_made():
    one, clock = keeper()
    began = clock()
    one.wait()
    assert clock() - began == pytest.approx(S / 2, abs=2)


def test_no_second_sees_more_than_two_and_no_minute_more_octets():
    one, clock = keeper()
    drawn = random.Random(5)
    made = []
    for _ in range(400):
        octets = drawn.choice([1_000, 200_000, 3_000_000])
        one.wait(octets)
        one.record_requests(octets)
        made.append((clock(), octets))
        clock.now_ns += drawn.randrange(S)
    times = [at for at, _ in made]
    assert all(later - earlier >= S / 2 - 2 for earlier, later in itertools.pairwise(times))
    for at, _ in made:
        assert sum(octets for then, octets in made if at - MINUTE_NS < then <= at) <= TO_OTHERS.volume_bytes


def test_an_answer_larger_than_a_minute_may_have_waits_for_an_empty_one():
    one, clock = keeper(Manners(2.0, 1_000_000, 100, 10**9))
    one.wait(5_000_000)
    one.record_requests(5_000_000)
    began = clock()
    one.wait(5_000_000)
    assert clock() - began == pytest.approx(MINUTE_NS, abs=S / 5)


def test_the_requests_of_a_trial_count_when_they_were_made():
    one, clock = keeper(Manners(2.0, 1_000_000, 100, 10**9))
    since = clock()
    clock.now_ns += 40 * S
    one.record_requests(1_000_000, 4, since)
    assert one.due_ns(250_000) == since + 10 * S + MINUTE_NS


def test_patience_is_what_the_server_says_and_more_each_time():
    one, clock = keeper()
    assert one.turned_away(2 * S) == 2 * S
    assert one.backing_off
    one.wait()
    assert not one.backing_off
    assert one.turned_away(2 * S) == 2 * manners.BACK_OFF_NS
    assert one.turned_away(None) == 4 * manners.BACK_OFF_NS
    one.answered()
    assert one.turned_away(None) == manners.BACK_OFF_NS
    assert one.turned_away(10**15) == manners.LONGEST_BACK_OFF_NS
    assert not one.may_now()
    assert clock() < one.due_ns()


def test_a_wait_ends_when_the_user_wants_to_stop():
    one, _ = keeper(stop=lambda: True)
    with pytest.raises(Stopped):
        one.wait()


def test_a_look_before_a_run_takes_of_the_runs_minute():
    clock, sent = Clock(), deque()
    own = Manners(2.0, 1_000_000, 100, 10**9)
    look, run = (RateLimiter(own, sent=sent, now_ns=clock, sleep=clock.sleep) for _ in range(2))
    look.record_requests(900_000)
    assert run.due_ns(200_000) == clock() + MINUTE_NS
    assert run.due_ns(100_000) == clock() + S // 2


def test_many_requests_at_once_are_paid_for_as_if_made_one_by_one():
    one, clock = keeper()
    one.record_requests(600_000, 60, clock())
    assert one.due_ns() == clock() + 30 * S
    clock.now_ns += 40 * S
    one.record_requests(600_000, 60, clock() - 25 * S)  # two visits of 30, the last one 10 s ago
    assert one.due_ns() == clock() + 5 * S


def test_a_run_after_a_look_waits_for_what_the_look_made_at_once():
    clock, sent = Clock(), deque()
    look = RateLimiter(TO_OTHERS, sent=sent, now_ns=clock, sleep=clock.sleep)
    look.record_requests(600_000, 60, clock())
    run = RateLimiter(TO_OTHERS, sent=sent, now_ns=clock, sleep=clock.sleep)
    assert run.due_ns() == clock() + 30 * S
