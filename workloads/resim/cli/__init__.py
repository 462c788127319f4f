"""The commands need a stack's outputs, kubectl, and access to the blobs."""
