"""The exporter behind `coop-kafka exporter`: groups as metrics of Prometheus. Needs the extra `exporter`.

look.py        IO: groups from Redis, log ends from Kafka   -> Look
samples.py     pure: Look                                   -> samples
metrics.py     every metric: name, type, labels, meaning
server.py      IO: samples in Prometheus' text format, over HTTP
"""
