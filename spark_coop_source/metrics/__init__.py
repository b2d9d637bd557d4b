"""Metrics of queries in the driver: a listener that turns our part of `lastProgress` into values, and into Prometheus.

Runs in the user's Python driver. Knows Spark's listener, no group, no Kafka and no Redis.
"""
