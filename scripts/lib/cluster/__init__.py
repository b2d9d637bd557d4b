"""A Spark cluster of several hosts on one machine, which scripts/cluster disturbs."""
