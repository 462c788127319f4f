"""The platform: Pulumi components, which create resources and nothing else, and what they share with workloads."""
