"""KubeRay: its real operator."""
