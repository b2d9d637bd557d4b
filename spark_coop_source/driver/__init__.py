"""Beside the driver: Spark's calls turned into the coordinator's."""
