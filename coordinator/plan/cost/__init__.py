"""Learns the cost of lanes, and decides how much of each lane is read and where lanes are cut. Pure."""
