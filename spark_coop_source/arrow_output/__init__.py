"""Columns as Arrow in Spark's schema."""
