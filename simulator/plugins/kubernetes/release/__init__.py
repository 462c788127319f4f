"""`kubernetes:helm.sh/v3:Release`: a chart installed, upgraded and removed by the real Helm CLI."""
