from __future__ import annotations

import pickle

from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.state import VOID, TimerQueue


def drained(timers: TimerQueue, limit: int = 1 << 62) -> list[tuple[int, object, object]]:
    fired = []
    while (timer := timers.pop_due(limit)) is not None:
        fired.append(timer)
    return fired


def restored(*snapshots: object) -> TimerQueue:
    timers = TimerQueue()
    for snapshot in snapshots:
        timers.apply(pickle.loads(pickle.dumps(snapshot)))
    return timers


def test_timers_fire_up_to_the_limit_and_not_beyond() -> None:
    timers = TimerQueue()
    for time in (11, 9, 10):
        timers.register(time, "a")
    assert drained(timers, 8) == []
    assert drained(timers, 10) == [(9, "a", VOID), (10, "a", VOID)]
    assert timers.peek() == 11


def test_timers_are_a_set_of_time_key_and_namespace() -> None:
    timers = TimerQueue()
    for key in ("k1", "k2"):
        for namespace in ("ciao", "hello"):
            timers.register(10, key, namespace)
            timers.register(10, key, namespace)
    assert (len(timers), timers.count("ciao"), timers.count("none")) == (4, 2, 0)
    assert len(drained(timers, 10)) == 4
    assert (len(timers), timers.peek()) == (0, None)


def test_deleted_timers_do_not_fire_and_a_missing_one_is_no_error() -> None:
    timers = TimerQueue()
    for key in ("k1", "k2"):
        for namespace in ("ciao", "hello"):
            timers.register(10, key, namespace)
    timers.delete(10, "k1", "hello")
    timers.delete(10, "k2", "ciao")
    timers.delete(10, "k2", "ciao")
    timers.delete(11, "k2", "ciao")
    assert drained(timers) == [(10, "k1", "ciao"), (10, "k2", "hello")]


def test_ties_fire_in_order_of_registration_and_registering_again_after_a_delete_goes_to_the_end() -> None:
    timers = TimerQueue()
    for key in ("c", "a", "b", "d"):
        timers.register(5, key)
    assert timers.pop_due(5) == (5, "c", VOID)
    timers.delete(5, "a")
    timers.register(5, "a")
    timers.register(4, "e")
    assert [key for _, key, _ in drained(timers)] == ["e", "b", "d", "a"]


def test_a_timer_registered_while_its_time_fires_is_part_of_the_same_pass() -> None:
    timers = TimerQueue()
    timers.register(5, "a")
    timers.register(5, "b")
    assert timers.pop_due(5) == (5, "a", VOID)
    timers.register(5, "a")
    assert drained(timers, 5) == [(5, "b", VOID), (5, "a", VOID)]


def test_keys_and_namespaces_need_no_order() -> None:
    timers = TimerQueue()
    timers.register(1, None, (1, 2))
    timers.register(1, "a", frozenset({3}))
    assert len(drained(timers)) == 2


def test_a_timer_that_came_and_went_leaves_nothing_in_the_delta() -> None:
    timers = TimerQueue()
    timers.register(1, "a")
    timers.pop_due(1)
    timers.register(2, "a")
    timers.delete(2, "a")
    assert timers.delta() == ([], [])


def test_delta_names_what_changed_once() -> None:
    timers = TimerQueue()
    timers.register(1, "a")
    timers.register(2, "b")
    assert timers.delta() == ([], [(1, "a", VOID), (2, "b", VOID)])
    timers.pop_due(1)
    timers.register(2, "c")
    timers.register(2, "b")
    assert timers.delta() == ([(1, "a", VOID)], [(2, "c", VOID)])
    assert timers.delta() == ([], [])


def test_a_delta_after_a_full_fits_both_the_full_and_the_delta_before_it() -> None:
    timers = TimerQueue()
    timers.register(1, "a")
    first = timers.delta()
    timers.register(2, "b")
    timers.register(3, "c")
    full = timers.full()
    timers.delete(2, "b")
    timers.register(4, "d")
    last = timers.delta()
    expected = [(1, "a", VOID), (3, "c", VOID), (4, "d", VOID)]
    assert list(restored(full, last)) == expected
    assert list(restored(first, last)) == expected


def test_a_full_replaces_what_was_there() -> None:
    source, target = TimerQueue(), TimerQueue()
    source.register(1, "a")
    target.register(2, "b")
    target.apply(source.full())
    assert list(target) == [(1, "a", VOID)]
    assert target.delta() == ([], [])


def test_retain_keeps_order() -> None:
    timers = TimerQueue()
    for key in (3, 1, 2, 4):
        timers.register(7, key)
        timers.register(key, key)
    timers.retain(lambda key: key % 2 == 1)
    assert [(time, key) for time, key, _ in drained(timers)] == [(1, 1), (3, 3), (7, 3), (7, 1)]


def test_many_deletes_do_not_keep_their_times() -> None:
    timers = TimerQueue()
    for time in range(10_000):
        timers.register(time, "a")
        timers.delete(time - 1, "a")
    assert list(timers) == [(9_999, "a", VOID)]
    assert len(timers._times) < 100


_TIMERS = st.tuples(st.integers(-3, 6), st.sampled_from("abcd"), st.sampled_from([VOID, "w"]))
_STEPS = (
    st.tuples(st.sampled_from(["register", "register", "delete"]), _TIMERS)
    | st.tuples(st.just("pop"), st.integers(-3, 6))
    | st.tuples(st.sampled_from(["delta", "full", "restore"]), st.none())
)


@settings(deadline=None, max_examples=300)
@given(st.lists(_STEPS, max_size=60))
def test_against_a_sorted_list(steps: list[tuple[str, object]]) -> None:
    timers = TimerQueue()
    oracle: dict[tuple[int, str, str], int] = {}
    stored: list[object] = []
    for number, (step, argument) in enumerate(steps):
        if step == "register":
            timers.register(*argument)
            oracle.setdefault(argument, number)
        elif step == "delete":
            timers.delete(*argument)
            oracle.pop(argument, None)
        elif step == "pop":
            due = sorted((seq, timer) for timer, seq in oracle.items() if timer[0] <= argument)
            expected = min((timer for _, timer in due), key=lambda timer: (timer[0], oracle[timer]), default=None)
            assert timers.pop_due(argument) == expected
            oracle.pop(expected, None)
        elif step == "delta":
            stored.append(timers.delta())
        elif step == "full":
            stored = [timers.full()]
        else:
            timers = restored(*stored, timers.delta())
            stored = [timers.full()]
        in_order = sorted(oracle, key=lambda timer: (timer[0], oracle[timer]))
        assert list(timers) == in_order
        assert timers.peek() == (in_order[0][0] if in_order else None)
        assert len(timers) == len(in_order)
    assert drained(restored(*stored, timers.delta())) == drained(timers)
