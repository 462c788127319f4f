"""What a stack is made from: settings, hardware facts and pinned versions. Pure: makes no resource and reaches no network."""
