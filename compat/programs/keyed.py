"""Keyed streams: rolling results, every kind of state, timers, connected and broadcast streams."""

from pyflink.common import Time, Types
from pyflink.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from pyflink.datastream import (
    AggregateFunction,
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    KeySelector,
    ReduceFunction,
    StreamExecutionEnvironment,
)
from pyflink.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)

PAIR = Types.TUPLE([Types.STRING(), Types.INT()])
DATA = [("a", 3), ("b", 5), ("a", 1), ("b", 2), ("a", 7)]


class First(KeySelector):
    def get_key(self, value):
        return value[0]


class Seconds(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1] * 1000


class Longest(ReduceFunction):
    def reduce(self, value1, value2):
        return value1 if value1[1] >= value2[1] else value2


class Mean(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a, acc_b):
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class Remember(KeyedProcessFunction):
    def open(self, runtime_context):
        ttl = (
            StateTtlConfig.new_builder(Time.hours(1))
            .update_ttl_on_create_and_write()
            .never_return_expired()
            .cleanup_full_snapshot()
            .build()
        )
        last = ValueStateDescriptor("last", Types.INT())
        last.enable_time_to_live(ttl)
        self.last = runtime_context.get_state(last)
        self.all = runtime_context.get_list_state(ListStateDescriptor("all", Types.INT()))
        self.seen = runtime_context.get_map_state(MapStateDescriptor("seen", Types.INT(), Types.STRING()))
        total = ReducingStateDescriptor("total", lambda a, b: a + b, Types.INT())
        self.total = runtime_context.get_reducing_state(total)
        mean = AggregatingStateDescriptor("mean", Mean(), Types.PICKLED_BYTE_ARRAY())
        self.mean = runtime_context.get_aggregating_state(mean)

    def process_element(self, value, ctx):
        before = self.last.value()
        self.last.update(value[1])
        self.all.add(value[1])
        self.all.add_all([0])
        self.seen.put(value[1], value[0])
        self.seen[value[1] + 1] = "next"
        self.total.add(value[1])
        self.mean.add(value[1])
        entries = sorted(self.seen.items()), sorted(self.seen.keys()), sorted(self.seen.values())
        known = self.seen.contains(4), self.seen.is_empty(), self.seen.get(value[1]), 4 in self.seen
        yield str(
            (ctx.get_current_key(), before, list(self.all.get()), entries, known, self.total.get(), self.mean.get())
        )
        self.seen.remove(value[1] + 1)
        if value[1] == 7:
            self.all.update([7])
            self.seen.clear()
            self.last.clear()
            self.total.clear()
            self.mean.clear()
            self.all.clear()
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 500)
        ctx.timer_service().register_event_time_timer(99_000)
        ctx.timer_service().delete_event_time_timer(99_000)

    def on_timer(self, timestamp, ctx):
        yield f"timer {ctx.get_current_key()} {timestamp} {ctx.time_domain()}"


class Join(KeyedCoProcessFunction):
    def open(self, runtime_context):
        self.left = runtime_context.get_list_state(ListStateDescriptor("left", Types.INT()))

    def process_element1(self, value, ctx):
        self.left.add(value[1])
        ctx.timer_service().register_event_time_timer(100_000)
        return []

    def process_element2(self, value, ctx):
        return []

    def on_timer(self, timestamp, ctx):
        yield f"joined {ctx.get_current_key()} {sorted(self.left)} {timestamp}"


RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())


class Rules(BroadcastProcessFunction):
    def process_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).contains(value[0])
        yield f"seen {value}"

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(value[0], value[1])
        yield f"rule {value[0]} of {len(list(ctx.get_broadcast_state(RULES).items()))}"


class KeyedRules(KeyedBroadcastProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(200_000)
        yield f"keyed {ctx.get_current_key()} {value[1]}"

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(value[0], value[1])
        yield f"keyed rule {value[0]}"

    def on_timer(self, timestamp, ctx):
        rules = ctx.get_broadcast_state(RULES)
        yield f"keyed timer {ctx.get_current_key()} {timestamp} {sorted(rules.keys())} {rules.get('a')}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Seconds())
    pairs = env.from_collection(DATA, type_info=PAIR).assign_timestamps_and_watermarks(strategy)
    keyed = pairs.key_by(First(), key_type=Types.STRING())
    for name in ("sum", "min", "max", "min_by", "max_by"):
        getattr(keyed, name)(1).map(lambda pair, name=name: f"{name} {pair}").print()
    keyed.reduce(Longest()).map(lambda pair: f"longest {pair}").print()
    keyed.filter(lambda pair: pair[1] > 2).map(lambda pair: f"kept {pair}").print()
    keyed.flat_map(lambda pair: [pair[1]] * 2).map(lambda n: f"twice {n}").print()
    keyed.map(lambda pair: pair[1]).map(lambda n: f"n {n}").print()
    keyed.union(keyed).map(lambda pair: f"both {pair}").print()
    keyed.project(0).map(lambda fields: f"project {fields[0]}").print()
    keyed.key_by(lambda pair: pair[1] % 2).sum(1).map(lambda pair: f"parity {pair[1]}").print()
    keyed.process(Remember(), output_type=Types.STRING()).print()
    pairs.connect(pairs).key_by(First(), First()).process(Join(), output_type=Types.STRING()).print()
    rules = env.from_collection([("a", 1), ("b", 2)], type_info=PAIR).assign_timestamps_and_watermarks(strategy)
    pairs.connect(rules.broadcast(RULES)).process(Rules(), output_type=Types.STRING()).print()
    keyed.connect(rules.broadcast(RULES)).process(KeyedRules(), output_type=Types.STRING()).print()
    env.execute("keyed")


if __name__ == "__main__":
    main()
