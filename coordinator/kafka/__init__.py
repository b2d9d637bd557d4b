"""Kafka from the driver: topics, log ends, offsets of times, Kafka's group of the same name."""
