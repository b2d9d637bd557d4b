"""The assignment of key ranges to members, and the ranges that one member releases. Pure."""
