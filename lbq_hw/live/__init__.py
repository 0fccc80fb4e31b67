"""A local page to draw, drop a picture or replay test images, and to watch the network.

`answers` computes the network's response to an input, `machines` runs it on the golden model or on
a board, `server` serves HTTP to browsers of this machine only, and `page/` is the page.
"""
