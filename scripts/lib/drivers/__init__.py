"""Several real Spark drivers in one group, which are killed, stopped, frozen and started again."""
