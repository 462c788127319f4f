"""`make bench`: compares the program with a bare program, and estimates the duration of `up` on Azure."""
