"""`make bench`: measures the program against a bare one, and estimates the time of its `up` on Azure."""
