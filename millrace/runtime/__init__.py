"""What a task does to records: no Spark in here, so everything can be tested in milliseconds."""
