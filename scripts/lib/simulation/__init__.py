"""Simulation of the real coordinator: real service, store and Lua, with time, crashes and Kafka of its own."""
