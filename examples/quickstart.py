"""The first program: which sensor was hottest in each minute of event time."""

from __future__ import annotations

from millrace.common import Duration, Time, WatermarkStrategy
from millrace.datastream import StreamExecutionEnvironment
from millrace.datastream.window import TumblingEventTimeWindows

READINGS = [
    ("kitchen", 21.5, 1_000),
    ("garden", 12.0, 15_000),
    ("kitchen", 23.0, 59_000),
    ("garden", 12.5, 58_000),
    ("kitchen", 22.0, 61_000),
]


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    by_time = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5)).with_timestamp_assigner(
        lambda reading, _: reading[2]
    )
    (
        env.from_collection(READINGS)
        .assign_timestamps_and_watermarks(by_time)
        .key_by(lambda reading: reading[0])
        .window(TumblingEventTimeWindows.of(Time.minutes(1)))
        .max_by(1)
        .print()
    )
    env.execute("hottest")


if __name__ == "__main__":
    main()
