"""`make bench`: measures the program against a bare one, and estimates how long its `up` takes on Azure."""
