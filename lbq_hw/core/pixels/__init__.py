"""The pixel input: pixels at their bit width become the bit planes that the first layer reads."""
