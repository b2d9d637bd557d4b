"""Starts a Kafka broker and a Valkey for tests. `scripts/lib/servers.py` shares its parts."""
