"""Explains why a workload waits and how to fix it, on any cluster that kubectl reaches."""
