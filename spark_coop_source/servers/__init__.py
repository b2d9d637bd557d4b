"""Starts a Kafka broker and a Valkey for a user's tests. `scripts/lib/servers.py` shares its parts."""
