"""Commands to log in to clusters: the real `kubelogin` (`bin/kubelogin`), and a small `az` for it."""
