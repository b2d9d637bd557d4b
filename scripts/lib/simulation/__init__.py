"""Simulates the real coordinator: real service, store and Lua, with simulated time, crashes and Kafka."""
