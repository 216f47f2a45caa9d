"""Windows: every assigner and trigger for event time and counts, with every kind of window function."""

from pyflink.common import Time, Types
from pyflink.common.time import Duration
from pyflink.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from pyflink.datastream import OutputTag, StreamExecutionEnvironment
from pyflink.datastream.functions import (
    AggregateFunction,
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from pyflink.datastream.state import ValueStateDescriptor
from pyflink.datastream.window import (
    ContinuousEventTimeTrigger,
    CountSlidingWindowAssigner,
    CountTrigger,
    CountTumblingWindowAssigner,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    PurgingTrigger,
    SessionWindowTimeGapExtractor,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)

PAIR = Types.TUPLE([Types.STRING(), Types.INT()])
DATA = [("a", 1), ("b", 2), ("a", 3), ("a", 8), ("b", 9), ("a", 21), ("a", 22)]


class Millis(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Gap(SessionWindowTimeGapExtractor):
    def extract(self, element):
        return element[1]


class Total(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + value[1]

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


class Show(ProcessWindowFunction):
    def open(self, runtime_context):
        self.calls = ValueStateDescriptor("calls", Types.INT())

    def process(self, key, context, elements):
        calls = context.global_state().get_state(self.calls)
        calls.update((calls.value() or 0) + 1)
        window = context.window()
        yield f"{key} [{window.start}, {window.end}) {list(elements)} {calls.value()}"

    def clear(self, context):
        pass


class Apply(WindowFunction):
    def apply(self, key, window, inputs):
        yield f"{key} {sorted(inputs)}"


class ShowAll(ProcessAllWindowFunction):
    def process(self, context, elements):
        yield f"all [{context.window().start}, {context.window().end}) {sorted(elements)}"


class ApplyAll(AllWindowFunction):
    def apply(self, window, inputs):
        yield f"apply all {window.max_timestamp()} {sorted(inputs)}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(1)).with_timestamp_assigner(Millis())
    pairs = env.from_collection(DATA, type_info=PAIR).assign_timestamps_and_watermarks(strategy)
    keyed = pairs.key_by(lambda pair: pair[0], key_type=Types.STRING())
    five = TumblingEventTimeWindows.of(Time.milliseconds(5))
    keyed.window(five).process(Show(), Types.STRING()).print("tumbling")
    keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(5), Time.milliseconds(2))).apply(
        Apply(), Types.STRING()
    ).print("offset")
    keyed.window(SlidingEventTimeWindows.of(Time.milliseconds(6), Time.milliseconds(3))).process(
        Show(), Types.STRING()
    ).print("sliding")
    keyed.window(EventTimeSessionWindows.with_gap(Time.milliseconds(4))).process(Show(), Types.STRING()).print(
        "session"
    )
    keyed.window(EventTimeSessionWindows.with_dynamic_gap(Gap())).process(Show(), Types.STRING()).print("dynamic")
    keyed.window(GlobalWindows.create()).trigger(PurgingTrigger.of(CountTrigger.of(2))).apply(
        Apply(), Types.STRING()
    ).print("global")
    keyed.count_window(2).apply(Apply(), Types.STRING()).print("count")
    keyed.window(CountTumblingWindowAssigner.of(2)).apply(Apply(), Types.STRING()).print("count of")
    keyed.window(CountSlidingWindowAssigner.of(2, 1)).apply(Apply(), Types.STRING()).print("count slide")
    keyed.window(five).trigger(EventTimeTrigger.create()).reduce(
        lambda a, b: (a[0], a[1] + b[1]), output_type=PAIR
    ).print("reduce")
    keyed.window(five).trigger(ContinuousEventTimeTrigger.of(Time.milliseconds(5))).reduce(
        lambda a, b: (a[0], a[1] + b[1]), window_function=Show(), output_type=Types.STRING()
    ).print("continuous")
    keyed.window(five).aggregate(Total(), output_type=Types.INT()).print("aggregate")
    keyed.window(five).aggregate(
        Total(), window_function=Show(), accumulator_type=Types.INT(), output_type=Types.STRING()
    ).print("aggregate process")
    late = OutputTag("late", Types.TUPLE([Types.STRING(), Types.INT()]))
    windowed = keyed.window(five).allowed_lateness(2).side_output_late_data(late).process(Show(), Types.STRING())
    windowed.print("late window")
    windowed.get_side_output(late).print("late")
    pairs.window_all(five).process(ShowAll(), Types.STRING()).print()
    pairs.window_all(five).apply(ApplyAll(), Types.STRING()).print()
    pairs.window_all(five).reduce(lambda a, b: ("all", a[1] + b[1]), output_type=PAIR).print("all reduce")
    pairs.window_all(five).aggregate(Total(), output_type=Types.INT()).print("all aggregate")
    env.execute("windows")


if __name__ == "__main__":
    main()
