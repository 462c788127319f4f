"""Code that simulated commands share: their view of the world, NCCL, ranks, logs. Imports no command."""
