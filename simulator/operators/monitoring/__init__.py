"""kube-prometheus-stack: its real operator, Prometheus and kube-state-metrics."""
