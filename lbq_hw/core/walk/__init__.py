"""The walker: a program's records become steps, and the steps' runs become scan requests."""
