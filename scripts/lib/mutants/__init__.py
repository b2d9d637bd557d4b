"""Seeded faults, each of which a test or a schedule must catch: they test the tests."""
