"""Taxi rides and fares of a made-up New York: every ride a pure function of its number and a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import TypeVar

__all__ = ["BEGINNING", "TaxiData", "TaxiFare", "TaxiRide"]

BEGINNING = 1_577_880_000_000
"""When the first ride starts: noon of 2020-01-01, UTC, in milliseconds."""

Event = TypeVar("Event", "TaxiRide", "TaxiFare")

_MINUTE = 60_000
_HOUR = 60 * _MINUTE


@dataclass(frozen=True, slots=True)
class TaxiRide:
    """The start or the end of a ride. Both events know when and where the ride began; only the END knows its end."""

    ride_id: int
    is_start: bool
    start_time: int
    end_time: int | None
    start_lon: float
    start_lat: float
    end_lon: float
    end_lat: float
    passenger_count: int
    taxi_id: int
    driver_id: int

    @property
    def event_time(self) -> int:
        """When this happened, in milliseconds."""
        return self.start_time if self.end_time is None else self.end_time


@dataclass(frozen=True, slots=True)
class TaxiFare:
    """What a ride cost, in cents, so that sums are exact. It counts for the time the ride began."""

    ride_id: int
    taxi_id: int
    driver_id: int
    start_time: int
    payment_type: str
    tip_cents: int
    tolls_cents: int
    total_cents: int

    @property
    def event_time(self) -> int:
        """When the ride began, in milliseconds."""
        return self.start_time


@dataclass(frozen=True)
class TaxiData:
    """So many rides, one every ``interval_ms``, and their fares.

    Events arrive up to ``disorder_ms`` after they happened, so they come out of order by at most that much; an END can
    come before its START. Shares of the rides leave the city, take hours, never end, or lack their START or their fare.
    ``late_fare_share`` of the fares arrive one to three hours later still, beyond what any watermark waits for.

    >>> data = TaxiData(rides=100)
    >>> data.start_of(7) == TaxiData(rides=5000).start_of(7)
    True
    >>> len(data.fares())
    97
    """

    rides: int
    seed: int = 1
    drivers: int = 40
    interval_ms: int = 15_000
    disorder_ms: int = 2 * _MINUTE
    outside_share: float = 0.05
    long_share: float = 0.02
    missing_start_share: float = 0.01
    missing_end_share: float = 0.02
    missing_fare_share: float = 0.02
    late_fare_share: float = 0.0

    def start_of(self, number: int) -> TaxiRide:
        """The START of a ride."""
        draw = self._draws("ride", number)
        start_lon, start_lat = self._place(draw)
        end_lon, end_lat = self._place(draw)
        return TaxiRide(
            ride_id=number,
            is_start=True,
            start_time=BEGINNING + number * self.interval_ms,
            end_time=None,
            start_lon=start_lon,
            start_lat=start_lat,
            end_lon=end_lon,
            end_lat=end_lat,
            passenger_count=draw.randint(1, 5),
            taxi_id=1000 + self._driver(number),
            driver_id=self._driver(number),
        )

    def end_of(self, number: int) -> TaxiRide:
        """The END of a ride."""
        draw = self._draws("duration", number)
        is_long = draw.random() < self.long_share
        duration = draw.randint(2 * _HOUR + 1, 5 * _HOUR) if is_long else draw.randint(_MINUTE, 50 * _MINUTE)
        start = self.start_of(number)
        return replace(start, is_start=False, end_time=start.start_time + duration)

    def fare_of(self, number: int) -> TaxiFare:
        """The fare of a ride."""
        draw = self._draws("fare", number)
        by_card = draw.random() < 0.7
        net = draw.randint(500, 6000)
        tip = net * draw.randint(0, 30) // 100 if by_card else 0
        tolls = draw.choice((0, 0, 0, 612))
        return TaxiFare(
            ride_id=number,
            taxi_id=1000 + self._driver(number),
            driver_id=self._driver(number),
            start_time=BEGINNING + number * self.interval_ms,
            payment_type="CARD" if by_card else "CASH",
            tip_cents=tip,
            tolls_cents=tolls,
            total_cents=net + tip + tolls,
        )

    def ride_events(self) -> list[TaxiRide]:
        """STARTs and ENDs in the order in which they arrive."""
        arrivals: list[tuple[int, TaxiRide]] = []
        for number in range(self.rides):
            draw = self._draws("journey", number)
            for event, missing in (
                (self.start_of(number), self.missing_start_share),
                (self.end_of(number), self.missing_end_share),
            ):
                lost, delay = draw.random() < missing, draw.randint(0, self.disorder_ms)
                if not lost:
                    arrivals.append((event.event_time + delay, event))
        return _in_order(arrivals)

    def fares(self) -> list[TaxiFare]:
        """Fares in the order in which they arrive."""
        arrivals: list[tuple[int, TaxiFare]] = []
        for number in range(self.rides):
            draw = self._draws("billing", number)
            lost, late = draw.random() < self.missing_fare_share, draw.random() < self.late_fare_share
            delay = draw.randint(0, self.disorder_ms) + (draw.randint(_HOUR, 3 * _HOUR) if late else 0)
            if not lost:
                fare = self.fare_of(number)
                arrivals.append((fare.event_time + delay, fare))
        return _in_order(arrivals)

    def _driver(self, number: int) -> int:
        return self._draws("driver", number).randint(1, self.drivers)

    def _place(self, draw: random.Random) -> tuple[float, float]:
        if draw.random() < self.outside_share:
            return round(draw.uniform(-75.5, -74.3), 5), round(draw.uniform(39.5, 40.4), 5)
        return round(draw.uniform(-74.03, -73.75), 5), round(draw.uniform(40.55, 40.95), 5)

    def _draws(self, what: str, number: int) -> random.Random:
        # Seeded by text: the same everywhere, unlike anything that goes through Python's salted hash().
        return random.Random(f"{self.seed} {what} {number}")


def _in_order(arrivals: list[tuple[int, Event]]) -> list[Event]:
    return [event for _, event in sorted(arrivals, key=lambda arrival: (arrival[0], arrival[1].ride_id))]
