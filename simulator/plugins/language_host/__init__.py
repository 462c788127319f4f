"""Stand-in for Pulumi's Python language host: runs the user's program in a process of its own for the engine."""
