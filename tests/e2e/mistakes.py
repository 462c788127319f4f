"""Emulated mistakes, as code that runs before the program (`Stack.alter`)."""

from __future__ import annotations

_MISTAKE = """
import pulumi


def mistake(args):
    props, opts = args.props, args.opts
    if args.type_ == {kind!r} and args.name == {name!r}:
        {change}
    return pulumi.ResourceTransformationResult(props, opts)


pulumi.runtime.register_stack_transformation(mistake)
"""


def mistake(kind: str, name: str, change: str) -> str:
    return _MISTAKE.format(kind=kind, name=name, change=change.strip().replace("\n", "\n        "))


WITHOUT_GPU_TOLERATIONS = mistake(
    "kubernetes:batch.volcano.sh/v1alpha1:Job",
    "nccl-allreduce",
    "del props['spec']['tasks'][1]['template']['spec']['tolerations']",
)
WITHOUT_PREFLIGHT = "from components.preflight import azure\nazure.check_subscription = lambda *_: None\n"


def fixed_pool(name: str) -> str:
    """Returns code that keeps the pool's name, without a replacement when immutable fields change."""
    text = f"props['agent_pool_name'] = {name!r}\nopts.replace_on_changes = []"
    return mistake("azure-native:containerservice:AgentPool", "pool-gpu", text)
