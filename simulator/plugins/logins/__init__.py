"""Simulated commands by which people log in to clusters: `kubelogin`, a credential plugin of kubectl, and `az`."""
