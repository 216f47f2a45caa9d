"""How long state lives when nobody looks after it."""

from __future__ import annotations

from enum import Enum
from typing import Any

from millrace.common.constants import LONG_MAX
from millrace.errors import ConfigurationError

__all__ = ["StateTtlConfig", "is_expired", "ttl_millis"]


def is_expired(last_access: int, ttl: int, now: int) -> bool:
    """Whether a value last written (or read, if reads count) at `last_access` is dead at `now`.

    Times have 64 bits: a life that would end beyond the last of them ends there.

    >>> [is_expired(1000, 100, now) for now in (1099, 1100, 1101)]
    [False, True, True]
    """
    return last_access + ttl <= now or now >= LONG_MAX


def ttl_millis(ttl: Any) -> int:
    """Milliseconds of a Time, a Duration, a timedelta or a plain int.

    >>> from datetime import timedelta
    >>> ttl_millis(timedelta(seconds=2)), ttl_millis(5)
    (2000, 5)
    """
    if isinstance(ttl, int):
        millis = int(ttl)
    elif hasattr(ttl, "to_milliseconds"):
        millis = int(ttl.to_milliseconds())
    elif hasattr(ttl, "to_millis"):
        millis = int(ttl.to_millis())
    elif hasattr(ttl, "total_seconds"):
        millis = round(ttl.total_seconds() * 1000)
    else:
        message = f"a time to live is a Time or a Duration, not {ttl!r}: use Time.hours(1), for example"
        raise ConfigurationError(message)
    if millis <= 0:
        message = f"a time to live must be positive, got {millis} ms: to keep state for ever, do not enable one"
        raise ConfigurationError(message)
    return millis


class StateTtlConfig:
    """How long the values of a state live, what prolongs their life, and how the dead are removed.

    Time to live runs on processing time. Build one with `new_builder` and give it to a descriptor's
    `enable_time_to_live`.

    >>> config = StateTtlConfig.new_builder(60_000).update_ttl_on_read_and_write().build()
    >>> config.get_update_type().name, config.get_state_visibility().name
    ('OnReadAndWrite', 'NeverReturnExpired')
    """

    class UpdateType(Enum):
        """What prolongs the life of a value."""

        Disabled = 0
        OnCreateAndWrite = 1
        OnReadAndWrite = 2

    class StateVisibility(Enum):
        """Whether a dead value that is still there may be seen once more."""

        ReturnExpiredIfNotCleanedUp = 0
        NeverReturnExpired = 1

    class TtlTimeCharacteristic(Enum):
        """Which clock counts."""

        ProcessingTime = 0

    class CleanupStrategies:
        """How dead values are removed that nobody reads again.

        >>> StateTtlConfig.CleanupStrategies().get_incremental_cleanup_strategy().get_cleanup_size()
        5
        """

        class Strategies(Enum):
            """The ways there are."""

            FULL_STATE_SCAN_SNAPSHOT = 0
            INCREMENTAL_CLEANUP = 1
            ROCKSDB_COMPACTION_FILTER = 2

        FULL_STATE_SCAN_SNAPSHOT = Strategies.FULL_STATE_SCAN_SNAPSHOT
        INCREMENTAL_CLEANUP = Strategies.INCREMENTAL_CLEANUP
        ROCKSDB_COMPACTION_FILTER = Strategies.ROCKSDB_COMPACTION_FILTER

        class CleanupStrategy:
            """Base of the settings of one way."""

        class EmptyCleanupStrategy(CleanupStrategy):
            """A way that has no settings."""

        class IncrementalCleanupStrategy(CleanupStrategy):
            """A few entries are looked at for every change."""

            def __init__(self, cleanup_size: int, run_cleanup_for_every_record: bool) -> None:
                if cleanup_size <= 0:
                    message = f"cleanup_size is a number of entries per change and must be positive, got {cleanup_size}"
                    raise ConfigurationError(message)
                self._cleanup_size = cleanup_size
                self._run_cleanup_for_every_record = run_cleanup_for_every_record

            def get_cleanup_size(self) -> int:
                """Entries looked at per change."""
                return self._cleanup_size

            def run_cleanup_for_every_record(self) -> bool:
                """Whether a record that touches no state counts as well."""
                return self._run_cleanup_for_every_record

        class RocksdbCompactFilterCleanupStrategy(CleanupStrategy):
            """For a backend on RocksDB; the heap backend does without."""

            def __init__(self, query_time_after_num_entries: int, periodic_compaction_time: Any = None) -> None:
                self._query_time_after_num_entries = query_time_after_num_entries
                self._periodic_compaction_time = periodic_compaction_time

            def get_query_time_after_num_entries(self) -> int:
                """After how many entries the clock is read again."""
                return self._query_time_after_num_entries

            def get_periodic_compaction_time(self) -> Any:
                """How old a file gets before it is compacted, as given."""
                return self._periodic_compaction_time

        def __init__(
            self,
            strategies: dict[Strategies, CleanupStrategy] | None = None,
            is_cleanup_in_background: bool = True,
        ) -> None:
            self._strategies = dict(strategies or {})
            self._in_background = is_cleanup_in_background

        def is_cleanup_in_background(self) -> bool:
            """Whether each backend may clean up in its own way."""
            return self._in_background

        def in_full_snapshot(self) -> bool:
            """Whether full snapshots leave out what is dead."""
            return self.FULL_STATE_SCAN_SNAPSHOT in self._strategies

        def get_incremental_cleanup_strategy(self) -> IncrementalCleanupStrategy | None:
            """The settings of the incremental way; None if it is off."""
            chosen = self._strategies.get(self.INCREMENTAL_CLEANUP)
            if isinstance(chosen, self.IncrementalCleanupStrategy):
                return chosen
            return self.IncrementalCleanupStrategy(5, False) if self._in_background else None

        def get_rocksdb_compact_filter_cleanup_strategy(self) -> RocksdbCompactFilterCleanupStrategy | None:
            """The settings of the RocksDB way; None if it is off."""
            chosen = self._strategies.get(self.ROCKSDB_COMPACTION_FILTER)
            if isinstance(chosen, self.RocksdbCompactFilterCleanupStrategy):
                return chosen
            return self.RocksdbCompactFilterCleanupStrategy(1000) if self._in_background else None

    class Builder:
        """Puts a configuration together.

        >>> StateTtlConfig.Builder(1000).return_expired_if_not_cleaned_up().build().get_ttl()
        1000
        """

        def __init__(self, ttl: Any) -> None:
            self._ttl = ttl
            self._update_type = StateTtlConfig.UpdateType.OnCreateAndWrite
            self._visibility = StateTtlConfig.StateVisibility.NeverReturnExpired
            self._characteristic = StateTtlConfig.TtlTimeCharacteristic.ProcessingTime
            self._in_background = True
            self._strategies: dict[
                StateTtlConfig.CleanupStrategies.Strategies, StateTtlConfig.CleanupStrategies.CleanupStrategy
            ] = {}

        def set_update_type(self, update_type: StateTtlConfig.UpdateType) -> StateTtlConfig.Builder:
            """What prolongs the life of a value."""
            self._update_type = update_type
            return self

        def update_ttl_on_create_and_write(self) -> StateTtlConfig.Builder:
            """Only writing prolongs a life; the default."""
            return self.set_update_type(StateTtlConfig.UpdateType.OnCreateAndWrite)

        def update_ttl_on_read_and_write(self) -> StateTtlConfig.Builder:
            """Reading prolongs a life, too."""
            return self.set_update_type(StateTtlConfig.UpdateType.OnReadAndWrite)

        def set_state_visibility(self, state_visibility: StateTtlConfig.StateVisibility) -> StateTtlConfig.Builder:
            """Whether a dead value may be seen once more."""
            self._visibility = state_visibility
            return self

        def return_expired_if_not_cleaned_up(self) -> StateTtlConfig.Builder:
            """A dead value that is still there is returned, once."""
            return self.set_state_visibility(StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp)

        def never_return_expired(self) -> StateTtlConfig.Builder:
            """A dead value is never seen; the default."""
            return self.set_state_visibility(StateTtlConfig.StateVisibility.NeverReturnExpired)

        def set_ttl_time_characteristic(
            self, ttl_time_characteristic: StateTtlConfig.TtlTimeCharacteristic
        ) -> StateTtlConfig.Builder:
            """Which clock counts; there is one."""
            self._characteristic = ttl_time_characteristic
            return self

        def use_processing_time(self) -> StateTtlConfig.Builder:
            """The clock of the task counts; the default."""
            return self.set_ttl_time_characteristic(StateTtlConfig.TtlTimeCharacteristic.ProcessingTime)

        def cleanup_full_snapshot(self) -> StateTtlConfig.Builder:
            """Leave dead values out of full snapshots; the state in memory keeps them."""
            strategies = StateTtlConfig.CleanupStrategies
            self._strategies[strategies.FULL_STATE_SCAN_SNAPSHOT] = strategies.EmptyCleanupStrategy()
            return self

        def cleanup_incrementally(
            self, cleanup_size: int, run_cleanup_for_every_record: bool = False
        ) -> StateTtlConfig.Builder:
            """Look at so many entries for every change."""
            strategies = StateTtlConfig.CleanupStrategies
            self._strategies[strategies.INCREMENTAL_CLEANUP] = strategies.IncrementalCleanupStrategy(
                cleanup_size, run_cleanup_for_every_record
            )
            return self

        def cleanup_in_rocksdb_compact_filter(
            self, query_time_after_num_entries: int, periodic_compaction_time: Any = None
        ) -> StateTtlConfig.Builder:
            """Settings for a backend on RocksDB."""
            strategies = StateTtlConfig.CleanupStrategies
            self._strategies[strategies.ROCKSDB_COMPACTION_FILTER] = strategies.RocksdbCompactFilterCleanupStrategy(
                query_time_after_num_entries, periodic_compaction_time
            )
            return self

        def disable_cleanup_in_background(self) -> StateTtlConfig.Builder:
            """Remove dead values only where they are read, and as the strategies say that were asked for."""
            self._in_background = False
            return self

        def set_ttl(self, ttl: Any) -> StateTtlConfig.Builder:
            """How long a value lives: a Time or a Duration."""
            self._ttl = ttl
            return self

        def build(self) -> StateTtlConfig:
            """The configuration."""
            return StateTtlConfig(
                self._update_type,
                self._visibility,
                self._characteristic,
                self._ttl,
                StateTtlConfig.CleanupStrategies(self._strategies, self._in_background),
            )

    def __init__(
        self,
        update_type: UpdateType,
        state_visibility: StateVisibility,
        ttl_time_characteristic: TtlTimeCharacteristic,
        ttl: Any,
        cleanup_strategies: CleanupStrategies,
    ) -> None:
        self._update_type = update_type
        self._state_visibility = state_visibility
        self._ttl_time_characteristic = ttl_time_characteristic
        self._ttl = ttl
        self._ttl_millis = ttl_millis(ttl)
        self._cleanup_strategies = cleanup_strategies

    @staticmethod
    def new_builder(ttl: Any) -> Builder:
        """Start with a time to live: a Time or a Duration."""
        return StateTtlConfig.Builder(ttl)

    def get_update_type(self) -> UpdateType:
        """What prolongs the life of a value."""
        return self._update_type

    def get_state_visibility(self) -> StateVisibility:
        """Whether a dead value may be seen once more."""
        return self._state_visibility

    def get_ttl(self) -> Any:
        """How long a value lives, as given."""
        return self._ttl

    def get_ttl_millis(self) -> int:
        """How long a value lives, in milliseconds."""
        return self._ttl_millis

    def get_ttl_time_characteristic(self) -> TtlTimeCharacteristic:
        """Which clock counts."""
        return self._ttl_time_characteristic

    def is_enabled(self) -> bool:
        """Whether values die at all."""
        return self._update_type is not StateTtlConfig.UpdateType.Disabled

    def get_cleanup_strategies(self) -> CleanupStrategies:
        """How dead values are removed that nobody reads again."""
        return self._cleanup_strategies

    def __repr__(self) -> str:
        return f"StateTtlConfig({self._ttl_millis} ms, {self._update_type.name}, {self._state_visibility.name})"
