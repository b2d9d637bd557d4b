"""Kafka as the driver sees it: log ends, offsets of times, a group of the same name."""
