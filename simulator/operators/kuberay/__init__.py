"""The real operator of KubeRay."""
