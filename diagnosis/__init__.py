"""Why a workload waits, and what to do: read from the cluster alone, with the words of those that hold it back.

It works on any cluster that kubectl reaches; nothing here knows of the simulator.
"""
