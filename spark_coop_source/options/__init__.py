"""What the user writes: one table of all options, and one value of those given."""
