"""The same count with plain Spark SQL, and whether the job agrees with it."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
from ad_events import AdEvents
from ad_view import AdView
from pyspark.sql import functions as F

from millrace.spark.session import get_session

__all__ = ["recount"]


def recount(events: AdEvents, count: int, window_ms: int, view: AdView) -> bool:
    """Count all views per campaign and window in SQL, and compare window by window.

    SQL sees all of the input at once, so nothing is late to it: its count is the job's count plus the late ones.
    """
    spark = get_session()

    def lines(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for batch in batches:
            yield pd.DataFrame({"line": [events(number) for number in batch["id"]]})

    schema = "ad_id string, event_type string, event_time long"
    campaigns = spark.createDataFrame(list(events.campaign_of().items()), "ad_id string, campaign string")
    counted = (
        spark.range(count)
        .mapInPandas(lines, "line string")
        .select(F.from_json("line", schema).alias("event"))
        .select("event.*")
        .where("event_type = 'view'")
        .join(F.broadcast(campaigns), "ad_id")
        .groupBy("campaign", (F.col("event_time") - F.col("event_time") % window_ms).alias("start"))
        .count()
        .collect()
    )
    expected = {(row["campaign"], row["start"]): row["count"] for row in counted}
    ours = view.by_window + view.late_by_window
    wrong = [key for key in expected.keys() | ours.keys() if expected.get(key, 0) != ours.get(key, 0)]
    if wrong:
        campaign, start = wrong[0]
        print(
            f"DISAGREES with Spark SQL in {len(wrong)} of {len(expected)} windows; first: {campaign} at {start}: "
            f"SQL {expected.get(wrong[0], 0)}, job {ours.get(wrong[0], 0)}"
        )
        return False
    print(f"Spark SQL agrees on all {len(expected):,} windows and {sum(expected.values()):,} views")
    return True
