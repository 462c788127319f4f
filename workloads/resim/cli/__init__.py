"""`python -m workloads.resim`, command by command. It needs a stack's outputs, kubectl, and a way to the blobs."""
