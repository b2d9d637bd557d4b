"""The group's state in Redis: one method a verb, one Lua script a method, every key spelt once."""
