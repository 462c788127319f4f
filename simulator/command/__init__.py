"""The command line of the simulator: `python -m simulator`, `make up`, and the daemon."""
