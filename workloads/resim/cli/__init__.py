"""Commands of `python -m workloads.resim`. They use a stack's outputs, kubectl, and blobs."""
