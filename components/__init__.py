"""The platform: Pulumi components, and the types that they share with workloads."""
