"""Measures the cost of each slice in its task; reports costs and the ends of the task to the driver by TCP."""
