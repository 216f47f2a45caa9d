"""Taxi events with only the fields a test cares about."""

from __future__ import annotations

from taxi_rides import TaxiFare, TaxiRide


def start(ride_id: int, start_time: int, **fields: float) -> TaxiRide:
    return ride(ride_id, start_time, None, **fields)


def end(ride_id: int, start_time: int, end_time: int, **fields: float) -> TaxiRide:
    return ride(ride_id, start_time, end_time, **fields)


def ride(
    ride_id: int,
    start_time: int,
    end_time: int | None,
    start_lon: float = -73.9,
    start_lat: float = 40.7,
    end_lon: float = -73.9,
    end_lat: float = 40.7,
) -> TaxiRide:
    return TaxiRide(ride_id, end_time is None, start_time, end_time, start_lon, start_lat, end_lon, end_lat, 1, 1001, 1)


def fare(ride_id: int, start_time: int, tip_cents: int = 100, driver_id: int = 1) -> TaxiFare:
    return TaxiFare(ride_id, 1000 + driver_id, driver_id, start_time, "CARD", tip_cents, 0, 1000 + tip_cents)
