"""`make bench`: how fast the program is, and how long its `up` would take on Azure. All in one run, as ratios."""
