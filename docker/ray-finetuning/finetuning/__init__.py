"""Fine-tuning of causal language models by LoRA, by itself or on Ray."""
