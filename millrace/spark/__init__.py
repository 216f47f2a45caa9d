"""Everything that knows Spark: the session, the plan builder, the stage functions and the epoch commit."""
