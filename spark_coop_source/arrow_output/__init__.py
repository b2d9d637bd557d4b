"""Makes Arrow batches in Spark's schema."""
