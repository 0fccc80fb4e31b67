"""The walker: turns a program's records into steps, and the runs of a step into scan requests."""
