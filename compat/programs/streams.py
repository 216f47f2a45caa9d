"""Streams without keys: transformations, partitioning, unions, side outputs, names and plans."""

import json

from pyflink.common import Configuration, Row, Types
from pyflink.common.watermark_strategy import WatermarkStrategy
from pyflink.datastream import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    FilterFunction,
    FlatMapFunction,
    MapFunction,
    OutputTag,
    ProcessFunction,
    SlotSharingGroup,
    StreamExecutionEnvironment,
)
from pyflink.datastream.connectors.number_seq import NumberSequenceSource


class Shout(MapFunction):
    def open(self, runtime_context):
        self.mark = "!" * runtime_context.get_number_of_parallel_subtasks()
        self.where = runtime_context.get_index_of_this_subtask() + runtime_context.get_attempt_number()

    def map(self, value):
        return value.upper() + self.mark * (self.where + 1)

    def close(self):
        self.mark = None


class Words(FlatMapFunction):
    def flat_map(self, value):
        yield from value.split()


class Long(FilterFunction):
    def filter(self, value):
        return len(value) > 2


class Both(CoMapFunction):
    def map1(self, value):
        return f"left {value}"

    def map2(self, value):
        return f"right {value}"


class BothFlat(CoFlatMapFunction):
    def flat_map1(self, value):
        yield value
        yield -value

    def flat_map2(self, value):
        yield len(value)


ODD = OutputTag("odd", Types.INT())


class Split(ProcessFunction):
    def process_element(self, value, ctx):
        if value % 2:
            yield ODD, value
        else:
            yield value


class SplitBoth(CoProcessFunction):
    def process_element1(self, value, ctx):
        yield f"one {value}"

    def process_element2(self, value, ctx):
        yield ODD, value


def main():
    env = StreamExecutionEnvironment.get_execution_environment(Configuration())
    env.set_parallelism(1)
    lines = env.from_collection(["to be or", "not to be"], type_info=Types.STRING()).name("lines").uid("lines")
    words = lines.flat_map(Words(), output_type=Types.STRING()).set_description("words of a line")
    words.filter(Long()).map(Shout(), output_type=Types.STRING()).print()
    words.map(lambda word: (word, len(word)), Types.TUPLE([Types.STRING(), Types.INT()])).project(1).print()
    numbers = env.from_source(NumberSequenceSource(1, 4), WatermarkStrategy.no_watermarks(), "numbers")
    small = env.from_collection([1, 2, 3, 4], type_info=Types.INT())
    halves = small.process(Split(), output_type=Types.INT())
    halves.map(lambda n: f"even {n}").print()
    halves.get_side_output(ODD).map(lambda n: f"odd {n}").print()
    for moved in (numbers.shuffle(), numbers.rebalance(), numbers.rescale(), numbers.forward(), numbers.broadcast()):
        moved.map(lambda n: f"moved {n}").print()
    numbers.partition_custom(lambda key, parts: key % parts, lambda n: n).map(lambda n: f"part {n}").print()
    small.union(small.map(lambda n: n * 10, Types.INT())).map(lambda n: f"union {n}").print()
    words.connect(small).map(Both(), output_type=Types.STRING()).print()
    small.connect(words).flat_map(BothFlat(), output_type=Types.INT()).map(lambda n: f"flat {n}").print()
    pairs = small.connect(small).process(SplitBoth(), output_type=Types.STRING())
    pairs.print()
    pairs.get_side_output(ODD).map(lambda n: f"two {n}").print()
    env.execute("streams")

    settled = env.from_collection([Row(a=1, b="x")], Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.STRING()]))
    settled.slot_sharing_group(SlotSharingGroup.builder("group").build()).start_new_chain().set_buffer_timeout(10)
    chained = settled.map(lambda row: row.b, Types.STRING()).set_parallelism(2).set_max_parallelism(8)
    chained.disable_chaining().name("b").uid("b").force_non_parallel()
    chained.print("out").name("end").uid("end").set_parallelism(1).disable_chaining().slot_sharing_group("group")
    print(settled.get_name(), settled.get_type(), chained.get_type())
    plan = json.loads(env.get_execution_plan())
    print([(node["pact"], node["parallelism"]) for node in plan["nodes"]])
    env.execute("settings")
    print(sorted(env.from_collection([3, 1, 2]).execute_and_collect("collected")))
    print(env.from_collection([3, 1, 2]).execute_and_collect(limit=2))


if __name__ == "__main__":
    main()
