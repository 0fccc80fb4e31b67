"""The scanner: ranges of plane words become events, at the pace of the set bits."""
