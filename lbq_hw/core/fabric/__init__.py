"""What is done for the sake of a fabric or of its tools: primitives, copies, hints, states."""
