"""What is done for the sake of a fabric or of its tools: copies of registers, hints, states."""
