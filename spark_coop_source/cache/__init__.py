"""One fetch for all tasks of a host: blocks of records in shared memory."""
