"""Asynchronous functions: in order, out of order, with a timeout, and again after failures."""

import asyncio

from pyflink.common import Time, Types
from pyflink.datastream import AsyncDataStream, AsyncFunction, AsyncRetryStrategy, StreamExecutionEnvironment


class Double(AsyncFunction):
    async def async_invoke(self, value):
        await asyncio.sleep(0.01 * (5 - value))
        return [2 * value]

    def timeout(self, value):
        return [-value]


class Slow(Double):
    async def async_invoke(self, value):
        await asyncio.sleep(5)
        return [value]


class Twice(Double):
    def __init__(self):
        self.failed = set()

    async def async_invoke(self, value):
        if value not in self.failed:
            self.failed.add(value)
            raise ValueError("once")
        return [value]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    numbers = env.from_collection([1, 2, 3], type_info=Types.INT())
    retry = AsyncRetryStrategy.fixed_delay(3, 10, None, lambda error: "once" in str(error))
    growing = AsyncRetryStrategy.exponential_backoff(3, 10, 100, 2.0, None, lambda error: True)
    wait = AsyncDataStream
    wait.ordered_wait(numbers, Double(), Time.seconds(5), 2, Types.INT()).print("ordered")
    wait.unordered_wait(numbers, Double(), Time.seconds(5), 2, Types.INT()).print("unordered")
    wait.unordered_wait(numbers, Slow(), Time.milliseconds(300), 3, Types.INT()).print("timeout")
    wait.ordered_wait_with_retry(numbers, Twice(), Time.seconds(5), retry, 2, Types.INT()).print("retry")
    wait.unordered_wait_with_retry(numbers, Twice(), Time.seconds(5), growing, 2, Types.INT()).print("growing")
    env.execute("async")


if __name__ == "__main__":
    main()
