"""The platform's parts as Pulumi components: each creates resources and nothing else."""
