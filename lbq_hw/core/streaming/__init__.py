"""The streaming core, block by block; `lbq_hw.streaming` has its programs and its cycles."""
