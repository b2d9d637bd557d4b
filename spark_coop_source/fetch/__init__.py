"""Fetches raw record batches from Kafka, with consumers that stay open between tasks."""
