"""Fine-tunes causal language models with LoRA, with or without Ray."""
