"""Several real Spark drivers in one group, which tests kill, stop, freeze and start again."""
