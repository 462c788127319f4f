"""`kubernetes:helm.sh/v3:Release`: a chart that the real Helm CLI installs, upgrades and removes."""
