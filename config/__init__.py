"""The inputs of a stack: settings, hardware facts and pinned versions. Creates no resources and uses no network."""
