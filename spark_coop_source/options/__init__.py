"""The options of a query: one table of all options, and one checked value of the user's options."""
