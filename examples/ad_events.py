"""Ad events as in the Yahoo! streaming benchmark: JSON lines, each a pure function of its number."""

from __future__ import annotations

import json
from dataclasses import dataclass

__all__ = ["AdEvents"]

_MASK = 2**64 - 1
_TYPES = ("view", "click", "purchase")


@dataclass(frozen=True)
class AdEvents:
    """Makes event number n, the same one however often and wherever it is asked for.

    Event time runs at ``per_second`` events a second. Events arrive up to ``disorder_ms`` behind, and a share of them
    much later than that; a share is malformed.
    """

    campaigns: int = 20
    ads_per_campaign: int = 10
    per_second: int = 1000
    disorder_ms: int = 2000
    late_share: float = 0.01
    malformed_share: float = 0.005
    start_ms: int = 1_700_000_000_000
    seed: int = 7

    def __call__(self, number: int) -> str:
        """The event as a line of JSON."""
        bits = _mix(number * 2_654_435_761 + self.seed)
        if (bits & 0xFFFF) / 0x10000 < self.malformed_share:
            return f'{{"ad_id": "ad-{bits % 97}", "event_ty'
        delay = (bits >> 16) % (self.disorder_ms + 1)
        if (bits >> 24 & 0xFFFF) / 0x10000 < self.late_share:
            delay += 20_000 + (bits >> 40) % 20_000
        return json.dumps(
            {
                "ad_id": f"ad-{(bits >> 32) % (self.campaigns * self.ads_per_campaign)}",
                "event_type": _TYPES[(bits >> 52) % len(_TYPES)],
                "event_time": self.start_ms + number * 1000 // self.per_second - delay,
            }
        )

    def campaign_of(self) -> dict[str, str]:
        """Which campaign each ad belongs to."""
        ads = range(self.campaigns * self.ads_per_campaign)
        return {f"ad-{ad}": f"campaign-{ad // self.ads_per_campaign:02d}" for ad in ads}


def _mix(value: int) -> int:
    """SplitMix64: 64 well-mixed bits from any number."""
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)
