"""Memories: planes with their summary flags and writer, and weight rows."""
