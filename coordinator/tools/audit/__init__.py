"""Compares a sink with Kafka: which records of a group are lost, repeated or out of order. Columns, never records."""
