"""The Commit API, for members that acknowledge records by themselves."""
