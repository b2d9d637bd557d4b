"""Writes records that failed to a dead-letter topic, from the tasks that read them."""
