"""What a stack is made from: settings, hardware facts, pinned versions. Makes no resource and reaches no network."""
