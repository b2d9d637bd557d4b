"""Measures this project beside Spark's own Kafka source; `scripts/bench` runs it."""
