"""A language model on GPUs, as simulated vLLM has it: whether it fits, and how long it takes. Nothing is computed."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.sandbox.library import view

_BYTES = 2
_GIB = 2**30


class Refused(Exception):
    """vLLM would end; the message has its words."""


@dataclass(frozen=True)
class Model:
    """On some GPUs of this pod."""

    name: str
    gpus: int
    facts: view.Json
    """Of `numbers()["language_models"]`."""
    sku: view.Json
    """Of `numbers()["skus"]`."""
    serving: view.Json
    memory_tbs: float
    """Of each GPU."""

    @classmethod
    def placed(cls, name: str, gpus: int) -> Model:
        """On the first `gpus` of the pod's. Raises Refused for a model that nobody knows, and without the GPUs."""
        known, numbers = view.load(), view.numbers()
        held = [gpu for gpu in known.gpus_of(known.me) if gpu["healthy"]]
        if not held:
            raise Refused(
                "RuntimeError: Failed to infer device type, please set the environment variable "
                "`VLLM_LOGGING_LEVEL=DEBUG` to turn on verbose logging to help debug the issue."
            )
        if len(held) < gpus:
            raise Refused(
                f"ValueError: World size ({gpus}) is larger than the number of available GPUs ({len(held)}) in "
                "this node."
            )
        if name not in numbers["language_models"]:
            raise Refused(
                f"OSError: {name} is not a local folder and is not a valid model identifier listed on "
                "'https://huggingface.co/models'\n"
                "simulator: on its hub are the models of config/facts/language_models.yaml alone"
            )
        product = held[0]["product"]
        speed = next((tbs for called, tbs in numbers["memory_tbs"].items() if called in product), 1.0)
        sku = numbers["skus"][known.node_of(known.me)["sku"]]
        return cls(name, gpus, numbers["language_models"][name], sku, numbers["serving"], speed)

    @property
    def kv_bytes(self) -> int:
        """Of a token, on each GPU."""
        facts = self.facts
        return 2 * _BYTES * int(facts["layers"]) * max(1, int(facts["kv_heads"]) // self.gpus) * int(facts["head"])

    @property
    def weight_bytes(self) -> float:
        """On each GPU."""
        return float(self.facts["weight_bytes"]) / self.gpus

    def check(self, longest: int) -> None:
        """Raises Refused for what cannot be whatever the memory is."""
        heads, context = self.facts["heads"], self.facts["context"]
        if heads % self.gpus:
            raise Refused(
                f"ValueError: Total number of attention heads ({heads}) must be divisible by tensor parallel size "
                f"({self.gpus})."
            )
        if longest > context:
            raise Refused(
                f"ValueError: User-specified max_model_len ({longest}) is greater than the derived max_model_len "
                f"(max_position_embeddings={context} or model_max_length=None in model's config.json)."
            )

    def cache_bytes(self, utilization: float, longest: int) -> float:
        """For keys and values, on each GPU. Raises Refused where the weights leave too little for one prompt."""
        memory = self.sku["gpu_memory_gb"] * 1e9
        if self.weight_bytes > memory:
            raise Refused(
                "torch.OutOfMemoryError: CUDA out of memory. GPU 0 has a total capacity of "
                f"{memory / _GIB:.2f} GiB, and the model's weights take {self.weight_bytes / _GIB:.2f} GiB of it"
            )
        left: float = utilization * memory - self.weight_bytes - self.serving["overhead_gb"] * 1e9
        if left <= 0:
            raise Refused(
                "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when "
                "initializing the engine"
            )
        if longest * self.kv_bytes > left:
            raise Refused(
                f"ValueError: To serve at least one request with the model's max seq len ({longest}), "
                f"({longest * self.kv_bytes / _GIB:.2f} GiB KV cache is needed, which is larger than the available KV "
                f"cache memory ({left / _GIB:.2f} GiB)."
            )
        return left

    def step_s(self, at_once: int, tokens: float) -> float:
        """Of one token for each of `at_once` prompts, which have `tokens` so far: the memory is read."""
        read = self.weight_bytes + at_once * tokens * self.kv_bytes
        return float(self.serving["step_s"]) + read / (self.memory_tbs * 1e12 * float(self.serving["memory_fraction"]))

    def prompt_s(self, tokens: int) -> float:
        """Until a prompt is read: its arithmetic."""
        peak = self.sku["tflops"] * 1e12 * self.gpus * self.serving["arithmetic_fraction"]
        return float(2 * self.facts["parameters"] * tokens / peak)
