"""Measures the cost of each slice in its task, and reports it to the driver by UDP."""
