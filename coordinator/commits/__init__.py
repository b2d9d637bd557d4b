"""The Commit API, for members that acknowledge by themselves."""
