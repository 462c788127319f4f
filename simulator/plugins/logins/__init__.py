"""Cluster logins: the real `kubelogin` (`bin/kubelogin`), and a small `az` that kubelogin calls."""
