"""Values that everybody uses: ranges, ids, topics and partitions, hashes, clocks, verdicts. Pure."""
