"""Decodes Kafka's record batches to columns, all records at once."""
