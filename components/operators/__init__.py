"""What is installed in the cluster: one module per operator, each with its values and its custom resources."""
