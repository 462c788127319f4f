"""The demonstration that seed 004 leaves to be written: what MLBatch does with a cluster that two teams share."""
