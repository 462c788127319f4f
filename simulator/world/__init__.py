"""The simulated hardware world: nodes, GPUs, HCAs, the fabric between them and what can break."""
