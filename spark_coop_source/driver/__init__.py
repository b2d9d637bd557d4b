"""The driver's side: translates Spark's calls to the coordinator's."""
