"""A demonstration of project-codeflare/mlbatch: how two teams share a cluster."""
