"""What API calls write into the graph."""

from __future__ import annotations

import json
from typing import Any

import pytest

from millrace.common import Duration, Row, Types, WatermarkStrategy
from millrace.connectors import DiscardSink, NumberSequenceSource
from millrace.datastream import (
    CoMapFunction,
    DataStream,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    OutputTag,
    Partitioner,
    ProcessFunction,
)
from millrace.errors import GraphError
from millrace.graph.node import Chaining, NodeKind
from millrace.graph.partitioners import Custom, KeyBy
from millrace.runtime.operators.process import ProcessOperator
from millrace.runtime.operators.rolling import ReduceOperator
from millrace.runtime.operators.stateless import FilterOperator, FlatMapOperator, MapOperator
from millrace.runtime.operators.watermarks import AssignWatermarks
from tests.datastream.helpers import environment, node, ships


class Double(MapFunction):
    def map(self, value: Any) -> Any:
        return value * 2


class Keep(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        yield value


class Both(CoMapFunction):
    def map1(self, value: Any) -> Any:
        return value

    def map2(self, value: Any) -> Any:
        return value


def test_a_chain_of_record_by_record_operators() -> None:
    env = environment()
    env.from_sequence(1, 9).map(Double()).filter(lambda n: n > 4).flat_map(lambda n: [n, n]).sink_to(DiscardSink())
    job = env.compile()
    assert [each.name for each in job.nodes] == ["Sequence Source", "Map", "Filter", "FlatMap", "Writer"]
    assert [each.node.kind for each in job.nodes] == [
        NodeKind.SOURCE,
        NodeKind.OPERATOR,
        NodeKind.OPERATOR,
        NodeKind.OPERATOR,
        NodeKind.SINK,
    ]
    kinds = [type(each.node.operator) for each in job.nodes[1:4]]
    assert kinds == [MapOperator, FilterOperator, FlatMapOperator]
    assert {each.chain for each in job.nodes} == {0}
    assert job.depth == 0


def test_a_collection_is_read_by_one_task_and_dealt_out_behind_it() -> None:
    env = environment(3)
    env.from_collection([1, 2]).map(lambda n: n).print()
    job = env.compile()
    assert [each.parallelism for each in job.nodes] == [1, 3, 3]
    assert ships(job, "Map") == ["REBALANCE"]
    assert [each.level for each in job.nodes] == [0, 1, 1]


def test_key_by_is_a_hash_edge_into_a_keyed_operator() -> None:
    env = environment()
    env.from_sequence(1, 9).key_by(lambda n: n % 2).reduce(max).print()
    job = env.compile()
    reduce = node(job, "Reduce")
    assert isinstance(reduce.node.operator, ReduceOperator)
    assert reduce.node.keyed
    assert ships(job, "Reduce") == ["HASH"]
    assert reduce.level == 1
    assert job.depth == 1


@pytest.mark.parametrize("method", ["sum", "min", "max", "min_by", "max_by"])
def test_aggregations_by_field(method: str) -> None:
    env = environment()
    pair = Types.TUPLE([Types.STRING(), Types.LONG()])
    stream = getattr(env.from_elements(("a", 1), type_info=pair).key_by(0), method)(1)
    assert isinstance(stream, DataStream)
    assert stream.get_name() == "Keyed Aggregation"
    assert stream.get_type() == pair


@pytest.mark.parametrize("method", ["map", "flat_map", "filter", "process"])
def test_functions_behind_key_by_have_keyed_state(method: str) -> None:
    env = environment()
    keyed = env.from_sequence(1, 9).key_by(lambda n: n)
    argument = Keep() if method == "process" else lambda n: n
    getattr(keyed, method)(argument).print()
    job = env.compile()
    assert job.nodes[1].node.keyed
    assert [edge.partitioner.ship_strategy for edge in job.nodes[1].inputs] == ["HASH"]


def test_names_of_process_operators() -> None:
    stream = environment().from_sequence(1, 9)
    keyed = stream.key_by(lambda n: n)
    assert keyed.process(Keep()).get_name() == "KEYED PROCESS"

    class Plain(ProcessFunction):
        def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
            yield value

    assert stream.process(Plain()).get_name() == "PROCESS"
    assert stream.project(0).get_name() == "Projection"


class ByName(KeySelector):
    def get_key(self, value: Any) -> Any:
        return value["name"]


@pytest.mark.parametrize(
    ("arguments", "record", "key", "label"),
    [
        ((lambda value: value[0],), ("a", 1), "a", "a function"),
        ((ByName(),), {"name": "a"}, "a", "ByName"),
        ((1,), ("a", 1), 1, "1"),
        (("name",), {"name": "a"}, "a", "name"),
        (("name",), Row(name="a"), "a", "name"),
        ((0, 2), ("a", 1, "c"), ("a", "c"), "0, 2"),
        (("a", "b"), {"a": 1, "b": 2}, (1, 2), "a, b"),
        ((["a", "b"],), {"a": 1, "b": 2}, (1, 2), "a, b"),
        ((lambda value: value, Types.BYTE()), 300, 44, "a function"),
    ],
)
def test_keys(arguments: tuple[Any, ...], record: Any, key: Any, label: str) -> None:
    env = environment()
    env.from_collection([1, "mixed"]).map(lambda value: value).key_by(*arguments).reduce(max).print()
    (edge,) = node(env.compile(), "Reduce").inputs
    assert isinstance(edge.partitioner, KeyBy)
    assert edge.partitioner.selector(record) == key
    assert edge.partitioner.label == label


@pytest.mark.parametrize(
    ("method", "ship"),
    [
        ("shuffle", "SHUFFLE"),
        ("rebalance", "REBALANCE"),
        ("rescale", "RESCALE"),
        ("broadcast", "BROADCAST"),
        ("forward", "FORWARD"),
        ("global_", "GLOBAL"),
        ("to_global", "GLOBAL"),
        ("global", "GLOBAL"),
    ],
)
def test_partitioning(method: str, ship: str) -> None:
    env = environment()
    getattr(env.from_sequence(1, 9), method)().map(lambda n: n).print()
    job = env.compile()
    assert ships(job, "Map") == [ship]
    assert node(job, "Map").level == (0 if ship == "FORWARD" else 1)


def test_the_last_word_on_partitioning_counts() -> None:
    env = environment()
    env.from_sequence(1, 9).rebalance().shuffle().key_by(lambda n: n).reduce(max).print()
    assert ships(env.compile(), "Reduce") == ["HASH"]


def test_partition_custom() -> None:
    class Modulo(Partitioner):
        def partition(self, key: Any, num_partitions: int) -> int:
            return int(key) % num_partitions

    env = environment()
    env.from_elements(("a", 7)).partition_custom(Modulo(), 1).map(lambda value: value).print()
    (edge,) = node(env.compile(), "Map").inputs
    assert isinstance(edge.partitioner, Custom)
    assert edge.partitioner.partition(edge.partitioner.selector(("a", 7)), 4) == 3


def test_union_reads_all_streams() -> None:
    env = environment()
    first, second = env.from_sequence(1, 3), env.from_sequence(4, 6)
    first.union(second, second.rebalance()).map(lambda n: n).print()
    assert ships(env.compile(), "Map") == ["FORWARD", "FORWARD", "REBALANCE"]


def test_union_of_a_keyed_stream_keeps_records_of_a_key_together() -> None:
    env = environment()
    numbers = env.from_sequence(1, 3)
    numbers.key_by(lambda n: n).union(numbers).map(lambda n: n).print()
    job = env.compile()
    assert ships(job, "Map") == ["HASH", "FORWARD"]
    assert not node(job, "Map").node.keyed


def test_connect() -> None:
    env = environment()
    first, second = env.from_sequence(1, 3), env.from_sequence(4, 6)
    first.connect(second).map(Both()).print()
    job = env.compile()
    assert [edge.side for edge in node(job, "Co-Map").inputs] == [0, 1]
    assert ships(job, "Co-Map") == ["FORWARD", "FORWARD"]
    assert not node(job, "Co-Map").node.keyed


def test_connected_keyed_streams_share_keyed_state() -> None:
    env = environment()
    first, second = env.from_sequence(1, 3), env.from_sequence(4, 6)
    first.connect(second).key_by(lambda n: n, lambda n: -n).map(Both()).print()
    job = env.compile()
    assert ships(job, "Co-Map") == ["HASH", "HASH"]
    assert node(job, "Co-Map").node.keyed


def test_side_outputs_are_edges_with_a_tag() -> None:
    class Route(ProcessFunction):
        def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
            yield OutputTag("odd"), value

    env = environment()
    main = env.from_sequence(1, 9).process(Route())
    main.get_side_output(OutputTag("odd", Types.LONG())).map(lambda n: n).print()
    (edge,) = node(env.compile(), "Map").inputs
    assert (edge.tag, edge.source.name) == ("odd", "PROCESS")
    assert main.get_side_output(OutputTag("odd", Types.LONG())).get_type() == Types.LONG()
    assert isinstance(edge.source.node.operator, ProcessOperator)


def test_settings_reach_the_node() -> None:
    env = environment()
    stream = (
        env.from_sequence(1, 9)
        .map(lambda n: n)
        .name("double")
        .uid("double-1")
        .set_parallelism(3)
        .set_max_parallelism(64)
        .set_description("twice as much")
        .start_new_chain()
        .set_buffer_timeout(10)
        .slot_sharing_group("group")
    )
    stream.print("out").name("shown").uid("shown-1").set_parallelism(1).disable_chaining()
    job = env.compile()
    double, shown = node(job, "double"), node(job, "shown")
    assert (double.uid, double.parallelism, double.max_parallelism) == ("double-1", 3, 64)
    assert (double.node.description, double.node.chaining) == ("twice as much", Chaining.HEAD)
    assert (shown.uid, shown.parallelism, shown.node.chaining) == ("shown-1", 1, Chaining.NEVER)
    assert stream.get_name() == "double"


def test_a_uid_hash_is_the_uid() -> None:
    env = environment()
    env.from_sequence(1, 9).map(lambda n: n).set_uid_hash("0123456789ABCDEF0123456789abcdef").print()
    assert node(env.compile(), "Map").uid == "0123456789abcdef0123456789abcdef"


def test_a_source_and_its_watermarks_are_set_together() -> None:
    env = environment()
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1)).with_timestamp_assigner(
        lambda n, _: n
    )
    stream = (
        env.from_source(NumberSequenceSource(1, 9), strategy, "numbers").set_parallelism(3).uid("n").name("renamed")
    )
    stream.print()
    job = env.compile()
    source, watermarks = node(job, "renamed"), node(job, "Timestamps/Watermarks")
    assert (source.uid, source.parallelism) == ("n", 3)
    assert (watermarks.uid, watermarks.parallelism) == ("n-watermarks", 3)
    assert isinstance(watermarks.node.operator, AssignWatermarks)
    assert source.chain == watermarks.chain
    assert stream.get_name() == "renamed"


def test_no_watermarks_without_assigner_adds_no_operator() -> None:
    env = environment()
    env.from_source(NumberSequenceSource(1, 9), WatermarkStrategy.no_watermarks(), "numbers").print()
    assert [each.name for each in env.compile().nodes] == ["numbers", "Print to Std. Out"]


def test_watermarks_are_assigned_where_records_are_read() -> None:
    env = environment(4)
    stream = env.from_elements(1, 2).assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
    stream.print()
    job = env.compile()
    assert node(job, "Timestamps/Watermarks").parallelism == 1
    assert ships(job, "Timestamps/Watermarks") == ["FORWARD"]


def test_streams_outlive_an_execution() -> None:
    env = environment()
    stream = env.from_sequence(1, 9).map(lambda n: n)
    stream.print()
    env.close()
    with pytest.raises(GraphError, match="no sink"):
        env.compile()
    stream.print()
    assert [each.name for each in env.compile().nodes] == ["Sequence Source", "Map", "Print to Std. Out"]


def test_a_stream_has_the_type_that_was_declared() -> None:
    env = environment()
    assert env.from_collection([("a", 1), ("b", 2)]).get_type() == Types.PICKLED_BYTE_ARRAY()
    assert env.from_collection([("a", 1)]).project(0).get_type() == Types.PICKLED_BYTE_ARRAY()
    assert env.from_collection([1, "a"]).get_type() == Types.PICKLED_BYTE_ARRAY()
    assert env.from_collection([1], Types.SHORT()).get_type() == Types.SHORT()
    assert env.from_elements(1).map(str, Types.STRING()).get_type() == Types.STRING()
    assert env.from_elements(1).map(str).get_type() == Types.PICKLED_BYTE_ARRAY()


def test_execution_plan() -> None:
    env = environment()
    env.from_collection([("a", 1)]).key_by(0).sum(1).print()
    plan = json.loads(env.get_execution_plan())["nodes"]
    assert [(each["type"], each["pact"], each["parallelism"]) for each in plan] == [
        ("Source: Collection Source", "Data Source", 1),
        ("_stream_key_by_map_operator", "Operator", 1),
        ("Keyed Aggregation", "Operator", 2),
        ("Sink: Print to Std. Out", "Data Sink", 2),
    ]
    assert [each["predecessors"][0]["ship_strategy"] for each in plan[1:]] == ["FORWARD", "HASH", "FORWARD"]


def test_explain_is_text_and_a_picture() -> None:
    env = environment()
    env.from_sequence(1, 9).key_by(lambda n: n).reduce(max).print()
    explanation = env.explain("count")
    assert explanation.startswith("Job 'count': 3 operators, 1 exchange")
    assert repr(explanation) == str(explanation)
    picture = explanation._repr_svg_()
    assert picture is not None
    assert picture.startswith("<svg")
