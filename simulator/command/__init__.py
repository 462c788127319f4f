"""The simulator's command line (`python -m simulator`, `make up`) and daemon."""
