"""The inputs of a stack: settings, hardware facts, pinned versions. Creates no resources and uses no network."""
