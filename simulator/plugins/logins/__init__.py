"""Cluster logins: the real `kubelogin` (`bin/kubelogin`), and a small `az` for it."""
