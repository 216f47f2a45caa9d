from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from millrace.common import Configuration
from millrace.datastream import EmbeddedRocksDBStateBackend, StreamExecutionEnvironment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_state_on_the_disks_of_sparks_workers(spark: SparkSession, tmp_path: Path) -> None:
    config = Configuration()
    config.set_string("state.backend.rocksdb.memory.fixed-per-slot", "0")
    config.set_string("pipeline.epoch.max-records", "100")
    backend = EmbeddedRocksDBStateBackend()
    backend.set_db_storage_paths(str(tmp_path / "state"))
    env = StreamExecutionEnvironment.get_execution_environment(config).set_parallelism(2).set_state_backend(backend)
    counts = env.from_sequence(1, 300).map(lambda number: (number % 7, 1)).key_by(lambda pair: pair[0]).sum(1)
    with counts.execute_and_collect() as results:
        final: dict[int, int] = {}
        for key, count in results:
            final[key] = max(count, final.get(key, 0))
    assert final == {0: 42, 1: 43, 2: 43, 3: 43, 4: 43, 5: 43, 6: 43}
    assert (tmp_path / "state").is_dir()
