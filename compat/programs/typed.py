"""Typed records: narrowing, tuples, arrays, and how they print."""

import datetime
from decimal import Decimal

from pyflink.common import Row, Types
from pyflink.datastream import StreamExecutionEnvironment


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    narrow = Types.TUPLE([Types.SHORT(), Types.INT(), Types.FLOAT(), Types.DOUBLE(), Types.BOOLEAN()])
    env.from_collection([(43878, 9147483648, 110.1, 0.1, True), (1, 2, 3.0, 1e10, False)], narrow).print()
    dates = Types.TUPLE([Types.SQL_DATE(), Types.SQL_TIME(), Types.SQL_TIMESTAMP(), Types.BIG_DEC()])
    moment = datetime.datetime.fromisoformat("2024-02-29 12:30:00.120000")
    env.from_collection([(moment.date(), moment.time(), moment, Decimal("1.50"))], dates).print()
    nested = Types.TUPLE([Types.STRING(), Types.LIST(Types.INT()), Types.MAP(Types.STRING(), Types.INT())])
    env.from_collection([("a", [1, 2], {"k": 1})], nested).print()
    env.from_collection([("x", 1), Row(1, None), None, 2.5]).map(lambda value: value).print()
    rows = env.from_collection([(1, "a")], Types.ROW_NAMED(["n", "s"], [Types.BYTE(), Types.STRING()]))
    rows.map(lambda row: f"{row} {row.n} {row['s']}").print()
    rows.map(lambda row: row.n + 20, Types.BYTE()).print()
    env.execute("typed")


if __name__ == "__main__":
    main()
