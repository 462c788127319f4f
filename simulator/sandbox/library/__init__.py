"""What simulated commands share: the world as they find it, NCCL, ranks, logs. No command is imported here."""
