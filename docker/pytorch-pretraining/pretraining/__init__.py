"""Pre-trains a decoder-only transformer on one or more nodes with torchrun."""
