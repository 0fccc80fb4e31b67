"""The pixel input: turns packed pixels into the bit planes that the first layer reads."""
