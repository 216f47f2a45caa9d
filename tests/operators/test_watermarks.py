from __future__ import annotations

import pytest

from millrace.common.constants import LONG_MAX, LONG_MIN
from millrace.common.watermark_strategy import (
    BoundedOutOfOrdernessWatermarks,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
)
from millrace.runtime.operators.watermarks import AssignWatermarks
from millrace.runtime.valve import Valve
from millrace.testing import OperatorHarness


class Emitted(WatermarkOutput):
    def __init__(self) -> None:
        self.watermarks: list[int] = []

    def emit_watermark(self, watermark: int) -> None:
        self.watermarks.append(int(watermark))

    def mark_idle(self) -> None:
        raise AssertionError("not asked for")

    def mark_active(self) -> None:
        raise AssertionError("not asked for")


# V1


@pytest.mark.parametrize(
    ("timestamps", "watermark"),
    [([], LONG_MIN), ([1337], 1326), ([12345, 12300, 12340, 12280], 12334)],
)
def test_bounded_out_of_orderness(timestamps: list[int], watermark: int) -> None:
    generator, output = BoundedOutOfOrdernessWatermarks(10), Emitted()
    for timestamp in timestamps:
        generator.on_event(object(), timestamp, output)
    assert output.watermarks == []
    generator.on_periodic_emit(output)
    assert output.watermarks == [watermark]


def assigning(strategy: WatermarkStrategy, **settings) -> OperatorHarness:
    return OperatorHarness(AssignWatermarks(strategy.with_timestamp_assigner(lambda value, _: value), **settings))


def test_a_watermark_follows_its_record_and_only_grows() -> None:
    harness = assigning(WatermarkStrategy.for_bounded_out_of_orderness(10), every_record=True)
    harness.process_batch([1337, 1300, 1340])
    assert harness.events() == [
        ("record", 1337, 1337),
        ("watermark", 1326),
        ("record", 1300, 1300),
        ("record", 1340, 1340),
        ("watermark", 1329),
    ]


def test_a_periodic_generator_is_asked_at_the_end_of_an_epoch() -> None:
    harness = assigning(WatermarkStrategy.for_monotonous_timestamps())
    harness.process_batch([5, 7, 6])
    assert harness.watermarks() == []
    restored = harness.restore(harness.snapshot())
    assert harness.watermarks() == [6]
    restored.process_element(4)
    restored.snapshot()
    assert restored.watermarks() == []
    restored.process_element(9)
    restored.snapshot()
    assert restored.watermarks() == [8]


def test_upstream_watermarks_end_here_except_the_last() -> None:
    harness = assigning(WatermarkStrategy.no_watermarks())
    harness.process_element(3)
    harness.process_watermark(100)
    harness.mark_idle()
    assert harness.events() == [("record", 3, 3)]
    harness.mark_active()
    harness.end_input()
    assert harness.watermarks() == [LONG_MAX]


class AtEvens(WatermarkGenerator):
    def on_event(self, event, timestamp, output):
        if timestamp % 2 == 0:
            output.emit_watermark(timestamp)

    def on_periodic_emit(self, output):
        return


def test_a_punctuated_generator_cuts_exactly_at_its_record() -> None:
    harness = assigning(WatermarkStrategy.for_generator(AtEvens))
    harness.process_batch([1, 2, 3, 6, 4])
    assert [event[:2] for event in harness.events()] == [
        ("record", 1),
        ("record", 2),
        ("watermark", 2),
        ("record", 3),
        ("record", 6),
        ("watermark", 6),
        ("record", 4),
    ]


def test_a_timestamp_that_is_not_an_integer_names_the_record() -> None:
    with pytest.raises(TypeError, match="not an integer") as raised:
        assigning(WatermarkStrategy.no_watermarks()).process_batch([1, 2.5])
    assert raised.value.__notes__[1] == "record: 2.5"


# V3


def test_the_combined_watermark_is_the_minimum() -> None:
    valve = Valve(range(3))
    assert [valve.watermark(channel, 0) for channel in range(3)] == [None, None, 0]
    assert [valve.watermark(0, 12), valve.watermark(2, 8), valve.watermark(2, 10)] == [None, None, None]
    assert valve.watermark(1, 15) == 10
    assert valve.watermark(2, 17) == 12
    assert valve.watermark(0, 20) == 15


def test_an_idle_channel_is_left_out_and_its_watermarks_are_ignored() -> None:
    valve = Valve(range(3))
    valve.watermark(0, 15)
    valve.watermark(1, 10)
    assert valve.output == LONG_MIN
    valve.idle(2, True)
    assert valve.advance() == 10
    assert valve.watermark(2, 12) is None
    assert valve.watermark(1, 9) is None
    assert valve.watermark(1, 11) == 11


def test_when_all_become_idle_the_greatest_watermark_is_let_through() -> None:
    valve = Valve(range(3))
    for channel, watermark in enumerate((10, 5, 3)):
        valve.watermark(channel, watermark)
    assert valve.output == 3
    steps = []
    for channel in range(3):
        valve.idle(channel, True)
        steps.append((valve.advance(), valve.all_idle))
    assert steps == [(None, False), (None, False), (10, True)]


def test_a_channel_that_comes_back_behind_does_not_count_until_it_has_caught_up() -> None:
    valve = Valve(range(2))
    valve.watermark(0, 5)
    valve.idle(1, True)
    assert valve.advance() == 5
    valve.idle(1, False)
    assert valve.watermark(1, 3) is None
    assert valve.watermark(0, 8) == 8
    assert valve.watermark(1, 9) is None
    assert valve.watermark(0, 12) == 9
