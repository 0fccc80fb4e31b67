"""A local page on which one draws, drops a picture or replays test images, and sees what happens.

`answers` says what a network makes of an input, `machines` where it runs, `server` speaks HTTP with
browsers of this machine alone, and `page/` is what they show.
"""
