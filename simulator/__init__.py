"""Azure and GPU hardware, simulated around real Kubernetes and Pulumi parts. The program never imports this."""
