"""Pre-training of a decoder-only transformer on one or many nodes, by torchrun."""
