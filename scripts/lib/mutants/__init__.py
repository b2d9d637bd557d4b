"""Seeded faults, each of which some test or schedule must catch: the tests are tested."""
