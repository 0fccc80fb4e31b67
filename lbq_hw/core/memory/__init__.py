"""Memories: planes with their summary flags and writer, weight rows, queues."""
