"""States whose declared type or version is another than when they were stored."""

from __future__ import annotations

import pickle
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.common.row import Row, RowKind
from millrace.common.time import Time
from millrace.common.typeinfo import TypeInformation, Types
from millrace.errors import RestoreError, StateError
from millrace.state import (
    AggregatingStateDescriptor,
    KeyedState,
    ListStateDescriptor,
    MapStateDescriptor,
    OperatorState,
    OperatorStore,
    ReducingStateDescriptor,
    StateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from millrace.state.evolution import RecordTypeInfo, form_of, upgrade

pytestmark = pytest.mark.usefixtures("each_backend")

INT, LONG, STRING = Types.INT(), Types.LONG(), Types.STRING()


def restored(*snapshots: Any, clock: int = 0) -> KeyedState:
    backend = KeyedState(lambda: clock)
    for snapshot in snapshots:
        backend.apply(pickle.loads(pickle.dumps(snapshot)))
    backend.current_key = "a"
    return backend


def stored(descriptor: StateDescriptor, write: Any) -> KeyedState:
    backend = restored()
    write(backend.get_state(descriptor))
    return backend


def value_after(before: Any, value: Any, after: Any) -> Any:
    written = stored(ValueStateDescriptor("s", before), lambda state: state.update(value))
    return restored(written.full()).get_state(ValueStateDescriptor("s", after)).value()  # type: ignore[attr-defined]


OLD = Types.ROW_NAMED(["id", "note"], [INT, STRING])
NEW = Types.ROW_NAMED(["clicks", "id"], [LONG, INT])


@pytest.mark.parametrize(
    ("before", "value", "after", "expected"),
    [
        (OLD, Row("id", "note")(1, "x"), NEW, Row("clicks", "id")(None, 1)),
        (OLD, Row("id", "note")(1, "x"), Types.ROW_NAMED(["note"], [STRING]), Row("note")("x")),
        (Types.ROW([INT]), Row(1), Types.ROW([INT, STRING]), Row(1, None)),
        (Types.ROW([INT, STRING]), Row(1, "x"), Types.ROW([INT]), Row(1)),
        (Types.LIST(OLD), [(1, "x"), None], Types.LIST(NEW), [Row("clicks", "id")(None, 1), None]),
        (Types.MAP(STRING, OLD), {"k": (1, "x")}, Types.MAP(STRING, NEW), {"k": Row("clicks", "id")(None, 1)}),
        (Types.TUPLE([INT, OLD]), (5, (1, "x")), Types.TUPLE([INT, NEW]), (5, Row("clicks", "id")(None, 1))),
        (
            Types.ROW_NAMED(["inner"], [OLD]),
            ((1, "x"),),
            Types.ROW_NAMED(["inner"], [NEW]),
            Row("inner")(Row("clicks", "id")(None, 1)),
        ),
        (
            RecordTypeInfo({"id": INT, "note": STRING}),
            {"id": 1, "note": "x"},
            RecordTypeInfo({"id": INT, "tags": Types.LIST(STRING)}, defaults={"tags": []}),
            {"id": 1, "tags": []},
        ),
        (None, 200, Types.BYTE(), -56),
        (Types.BYTE(), 3, None, 3),
        (Types.PICKLED_BYTE_ARRAY(), "x", STRING, "x"),
        (INT, 3, INT, 3),
    ],
)
def test_types_that_may_follow_each_other(before: Any, value: Any, after: Any, expected: Any) -> None:
    assert value_after(before, value, after) == expected


def test_the_kind_of_a_row_stays() -> None:
    assert value_after(OLD, Row.of_kind(RowKind.DELETE, 1, "x"), NEW).get_row_kind() is RowKind.DELETE


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (INT, LONG, "state 's' was stored as Integer and is now declared as Long"),
        (INT, STRING, "stored as Integer and is now declared as String.*version=2.*migrations={1"),
        (OLD, Types.ROW_NAMED(["id"], [LONG]), r"field 'id': Integer cannot become Long"),
        (OLD, INT, r"RowTypeInfo\(id: Integer, note: String\) and is now declared as Integer"),
        (Types.MAP(STRING, INT), Types.MAP(INT, INT), "MapTypeInfo<String, Integer> cannot become"),
        (Types.TUPLE([INT]), Types.TUPLE([INT, INT]), "a tuple has no names"),
        (RecordTypeInfo({"a": INT}), RecordTypeInfo({"a": INT, "b": INT}), "new field 'b' has no default"),
    ],
)
def test_types_that_may_not(before: TypeInformation, after: TypeInformation, message: str) -> None:
    written = KeyedState(lambda: 0)
    written.get_state(ValueStateDescriptor("s", before))
    with pytest.raises(RestoreError, match=message):
        restored(written.full()).get_state(ValueStateDescriptor("s", after))


def test_a_value_that_does_not_fit_the_type_it_never_had() -> None:
    with pytest.raises(RestoreError, match="the stored value 'many' does not become Integer of version 1: TypeError"):
        value_after(None, "many", INT)


def test_the_keys_of_a_map_may_not_change() -> None:
    written = stored(MapStateDescriptor("s", STRING, INT), lambda state: state.put("k", 1))
    with pytest.raises(RestoreError, match="String -> Integer and is now declared as Integer -> Integer.*keys cannot"):
        restored(written.full()).get_state(MapStateDescriptor("s", INT, INT))


@pytest.mark.parametrize("form", [("value", "Integer", False), ("value", "any", False)])
def test_forms_of_before_are_compared_by_their_words(form: Any) -> None:
    full = {"s": (form, (None, {"": ({"a": 1}, [])}))}
    assert restored(full).get_state(ValueStateDescriptor("s", INT)).value() == 1  # type: ignore[attr-defined]
    if form[1] == "Integer":
        with pytest.raises(RestoreError, match="stored as Integer and is now declared as String"):
            restored(full).get_state(ValueStateDescriptor("s", STRING))


def double(value: int) -> int:
    return value * 2


def name_it(value: int) -> str:
    return f"n{value}"


class Total:
    def create_accumulator(self) -> Any:
        return 0

    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator + value

    def get_result(self, accumulator: Any) -> Any:
        return accumulator


def add(a: Any, b: Any) -> Any:
    return a + b


MIGRATIONS = {1: double, 2: name_it}
CASES: list[tuple[Any, Any, Any, Any]] = [
    (ValueStateDescriptor, (), lambda state: state.update(4), lambda state: state.value()),
    (ListStateDescriptor, (), lambda state: state.update([4]), lambda state: list(state.get())[0]),
    (MapStateDescriptor, (), lambda state: state.put("k", 4), lambda state: state.get("k")),
    (ReducingStateDescriptor, (add,), lambda state: state.add(4), lambda state: state.get()),
    (AggregatingStateDescriptor, (Total(),), lambda state: state.add(4), lambda state: state.get()),
]


@pytest.mark.parametrize(("kind", "arguments", "write", "read"), CASES)
@pytest.mark.parametrize("timed_before", [False, True])
@pytest.mark.parametrize("timed_after", [False, True])
def test_migrations_follow_each_other(
    kind: Any, arguments: Any, write: Any, read: Any, timed_before: bool, timed_after: bool
) -> None:
    def descriptor(timed: bool, **options: Any) -> Any:
        made = kind("s", *arguments, **options)
        if timed:
            made.enable_time_to_live(StateTtlConfig.new_builder(Time.milliseconds(100)).build())
        return made

    first = stored(descriptor(timed_before), write)
    second = restored(first.full())
    assert read(second.get_state(descriptor(timed_after, version=2, migrations={1: double}))) == 8
    # The whole state is written again, once, and a restore from the chain of parts is no migration any more. (Only the
    # switch of time to live is made again, in the parts that were written before it.)
    delta = second.delta()
    assert second.delta() == {}
    third = restored(first.full(), delta)
    assert read(third.get_state(descriptor(timed_after, version=2, migrations={1: double}))) == 8
    assert (third.delta() == {}) == (timed_before == timed_after)
    last = restored(first.full(), delta)
    assert read(last.get_state(descriptor(timed_after, version=3, migrations=MIGRATIONS))) == "n8"
    skipping = restored(first.full())
    assert read(skipping.get_state(descriptor(timed_after, version=3, migrations=MIGRATIONS))) == "n8"


def test_a_migration_may_change_the_type() -> None:
    written = stored(ValueStateDescriptor("s", INT), lambda state: state.update(4))
    descriptor = ValueStateDescriptor("s", STRING, version=2, migrations={1: str})
    assert restored(written.full()).get_state(descriptor).value() == "4"  # type: ignore[attr-defined]
    with pytest.raises(RestoreError, match="'s': the stored value 4 does not become String of version 2: TypeError"):
        restored(written.full()).get_state(ValueStateDescriptor("s", STRING, version=2, migrations={1: double}))


def test_a_missing_step_and_a_newer_version() -> None:
    written = stored(ValueStateDescriptor("s"), lambda state: state.update(4))
    with pytest.raises(RestoreError, match="nothing leads from 1 to 2: add 1: lambda old"):
        restored(written.full()).get_state(ValueStateDescriptor("s", version=3, migrations={2: double}))
    newer = stored(ValueStateDescriptor("s", version=2), lambda state: state.update(4))
    with pytest.raises(RestoreError, match="stored in version 2, and the program has version 1"):
        restored(newer.full()).get_state(ValueStateDescriptor("s"))


@pytest.mark.parametrize(
    "options", [{"version": 0}, {"version": "2"}, {"migrations": {1: double}}, {"version": 2, "migrations": {1: "x"}}]
)
def test_versions_and_migrations_that_make_no_sense(options: Any) -> None:
    with pytest.raises(StateError, match="state 's'"):
        ValueStateDescriptor("s", **options)


def test_one_state_has_one_version() -> None:
    backend = stored(ValueStateDescriptor("s", version=2), lambda state: state.update(1))
    with pytest.raises(StateError, match="asked for in version 2 and in version 1"):
        backend.get_state(ValueStateDescriptor("s"))


def test_a_live_state_takes_over_older_values() -> None:
    older = stored(ValueStateDescriptor("s"), lambda state: state.update(4))
    backend = restored()
    state: Any = backend.get_state(ValueStateDescriptor("s", version=2, migrations={1: double}))
    backend.apply(older.full())
    assert state.value() == 8


def test_tasks_with_two_versions_of_a_state_are_not_mixed() -> None:
    fulls = []
    for key, descriptor in (("a", ValueStateDescriptor("s")), ("b", ValueStateDescriptor("s", version=2))):
        store = OperatorStore()
        store.keyed.current_key = key
        store.keyed.get_state(descriptor).update(1)  # type: ignore[attr-defined]
        fulls.append(store.full())
    with pytest.raises(RestoreError, match="version 1 .any. in one task and of version 2"):
        OperatorStore.rescale(fulls, 0, 1, 128)


def test_operator_state_migrates_and_keeps_its_form_when_rescaled() -> None:
    state = OperatorState()
    state.list_state(ListStateDescriptor("l", INT)).update([1, 2, 3])
    state.union_list_state(ListStateDescriptor("u")).update([5])
    state.broadcast_state(MapStateDescriptor("b", STRING, OLD)).put("k", (1, "x"))
    for full in OperatorState.redistribute([state.full()], 2):
        after = OperatorState()
        after.apply(pickle.loads(pickle.dumps(full)))
        with pytest.raises(RestoreError, match="'l' was stored as Integer and is now declared as String"):
            after.list_state(ListStateDescriptor("l", STRING))
        numbers = list(after.list_state(ListStateDescriptor("l", LONG, version=2, migrations={1: double})).get())
        assert numbers in ([2, 6], [4])
        assert list(after.union_list_state(ListStateDescriptor("u", version=2, migrations={1: name_it})).get()) == [
            "n5"
        ]
        assert after.broadcast_state(MapStateDescriptor("b", STRING, NEW)).get("k") == Row("clicks", "id")(None, 1)
        delta = after.delta()
        assert sorted(name for kind, name in delta if kind != "form") == ["b", "l", "u"]
        assert after.delta() == {}
        again = OperatorState()
        again.apply(full)
        again.apply(delta)
        descriptor = ListStateDescriptor("l", LONG, version=2, migrations={1: double})
        assert list(again.list_state(descriptor).get()) == numbers


FIELD_TYPES = {"a": INT, "b": STRING, "c": Types.LIST(INT), "d": Types.DOUBLE()}
VALUES = {"a": 1, "b": "x", "c": [1, 2], "d": 0.5}
FIELDS = st.lists(st.sampled_from(sorted(FIELD_TYPES)), unique=True, min_size=1)


@given(versions=st.lists(FIELDS, min_size=2, max_size=4))
def test_random_rows_and_records_come_and_go(versions: list[list[str]]) -> None:
    row: Any = Row(*versions[0])(*[VALUES[name] for name in versions[0]])
    record: Any = {name: VALUES[name] for name in versions[0]}
    held = set(versions[0])
    for before, after in pairwise(versions):
        row = evolved(row_type(before), row, row_type(after))
        record = evolved(record_type(before), record, record_type(after))
        held &= set(after)
        assert row == Row(*after)(*[VALUES[name] if name in held else None for name in after])
        assert record == {name: VALUES[name] for name in after}


def row_type(names: list[str]) -> TypeInformation:
    return Types.ROW_NAMED(names, [FIELD_TYPES[name] for name in names])


def record_type(names: list[str]) -> TypeInformation:
    return RecordTypeInfo({name: FIELD_TYPES[name] for name in names}, {name: VALUES[name] for name in names})


def evolved(before: TypeInformation, value: Any, after: TypeInformation) -> Any:
    turn = upgrade(form_of(ValueStateDescriptor("s", before), timed=False), ValueStateDescriptor("s", after))
    return value if turn is None else turn(value)
