"""What people start: `python -m simulator`, `make up`, and the process that all of it runs in."""
