"""Commands of `python -m workloads.resim`. They need a stack's outputs, kubectl, and the blobs."""
