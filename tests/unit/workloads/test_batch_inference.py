from __future__ import annotations

from typing import Any

import pytest

from config.data.language_models import language_models, misspelt
from config.data.scheduling import COSCHEDULER
from config.data.skus import sku
from tests.support.case_files import case_table, read
from tests.support.pools import place
from tests.support.sizes import H100, H200
from workloads.batch_inference import manifests, memory
from workloads.batch_inference.manifests import Run
from workloads.batch_inference.options import BatchInferenceOptions
from workloads.batch_inference.scripts import report

TOKEN = "hf_secret"


def run(vm_sku: str = H100, **options: Any) -> Run:
    return Run(
        options=BatchInferenceOptions.model_validate({"team": "blue", **options}),
        name="mine-batch-inference",
        claim="model",
        **place(vm_sku, scheduler=COSCHEDULER),
    )


def containers(found: Run) -> tuple[dict[str, Any], dict[str, Any]]:
    server, generator = manifests.template(found)["spec"]["containers"]
    return server, generator


def variables(container: dict[str, Any]) -> dict[str, Any]:
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in container["env"]}


def after(words: list[str], name: str) -> str:
    return words[words.index(name) + 1]


def test_only_the_server_has_gpus() -> None:
    server, generator = containers(run(gpus=4))
    assert (server["name"], server["resources"]["limits"]) == ("vllm", {"nvidia.com/gpu": "4"})
    assert generator["resources"] == {"requests": {"cpu": "2", "memory": "4Gi"}}
    assert variables(generator)["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert "NVIDIA_VISIBLE_DEVICES" not in variables(server)


def test_requests_the_same_share_of_cpus_and_memory_as_of_gpus() -> None:
    server, generator = containers(run(gpus=2))
    asked = [each["resources"]["requests"] for each in (server, generator)]
    assert sum(int(each["cpu"]) for each in asked) == 21
    assert sum(int(each["memory"].removesuffix("Gi")) for each in asked) == 419


def test_passes_options_to_both_containers() -> None:
    server, generator = containers(run(model="Qwen/Qwen2.5-7B-Instruct", inputLength=1000, outputLength=200, gpus=4))
    assert server["args"][0] == after(generator["args"], "--model") == "Qwen/Qwen2.5-7B-Instruct"
    assert after(server["args"], "--tensor-parallel-size") == "4"
    assert after(server["args"], "--max-model-len") == "1264"
    assert after(server["args"], "--port") == after(generator["args"], "--port") == variables(generator)["PORT"]
    assert after(generator["args"], "--random-input-len") == "1000"
    assert after(generator["args"], "--random-output-len") == "200"


@case_table(__file__, "longest")
def test_limits_the_length_to_the_models_maximum(options: dict[str, Any], longest: str) -> None:
    server, _ = containers(run(**{"model": "Qwen/Qwen2.5-7B-Instruct", **options}))
    assert after(server["args"], "--max-model-len") == longest


def test_only_the_server_gets_the_token() -> None:
    server, generator = containers(run(huggingFaceToken=TOKEN))
    assert variables(server)["HF_TOKEN"] == {"secretKeyRef": {"name": "mine-batch-inference", "key": "HF_TOKEN"}}
    assert "HF_TOKEN" not in variables(generator)
    assert variables(generator)["HF_HUB_OFFLINE"] == "1"
    assert TOKEN not in repr(manifests.job(run(huggingFaceToken=TOKEN)))
    assert "HF_TOKEN" not in variables(containers(run())[0])


def test_only_options_that_change_results_change_the_file() -> None:
    changes: list[dict[str, Any]] = [{"run": 2}, {"prompts": 8}, {"concurrency": 8}, {"gpus": 2}, {"model": "a/b"}]
    found = {run().result, run(H200).result, *(run(**each).result for each in changes)}
    assert len(found) == 2 + len(changes)
    assert run().result == run(appWrapper=False, restarts=1, huggingFaceToken=TOKEN).result
    assert run().result.startswith("/cache/results/mine-batch-inference/1-")


def test_retries_failed_pods_only_without_an_appwrapper() -> None:
    assert manifests.job(run())["spec"]["backoffLimit"] == 0
    plain = manifests.job(run(appWrapper=False, restarts=5))["spec"]
    assert plain["backoffLimit"] == 5
    assert "podFailurePolicy" not in plain, "it would wait for a lost node"
    assert manifests.wrapper_options(run(restarts=5))["retryLimit"] == "5"


@pytest.mark.parametrize("model", ["ibm-granite/granite-3.2-8b-instruct", "Qwen/Qwen2.5-7B-Instruct", "a_b/C__d"])
def test_the_name_of_a_models_claim_is_valid(model: str) -> None:
    name = manifests.claim_name(model)
    assert name == name.lower()
    assert not set(name) - set("abcdefghijklmnopqrstuvwxyz0123456789.-")


RESULT = {
    "model_id": "a/b",
    "completed": 40,
    "duration": 5.02,
    "max_concurrency": 8,
    "request_throughput": 7.968,
    "output_throughput": 1019.9,
    "total_token_throughput": 2039.8,
    **{
        f"{statistic}_{metric}_ms": 10 * number + place
        for number, metric in enumerate(report.METRICS)
        for place, statistic in enumerate(report.STATISTICS)
    },
}


def test_prints_results_as_a_short_table() -> None:
    first, head, ttft, *_, rates = report.lines(RESULT)
    assert first == "a/b: 40 prompts answered in 5.0 s, 8 in parallel"
    assert head.split() == ["ms", *report.STATISTICS]
    assert ttft.split()[-4:] == ["0.00", "1.00", "2.00", "3.00"]
    assert rates == "requests/s 7.97, output tokens/s 1020, all tokens/s 2040"


def test_stores_no_results_if_prompts_failed() -> None:
    assert report.error(RESULT, 40) == ""
    assert report.error(RESULT, 41) == "only 40 of 41 prompts were answered; no results are stored"


CASES = read(__file__, "language_models")

GRANITE, LLAMA, QWEN = (
    "ibm-granite/granite-3.2-8b-instruct",
    "meta-llama/Llama-3.1-70B-Instruct",
    "Qwen/Qwen2.5-7B-Instruct",
)


def options(**more: Any) -> BatchInferenceOptions:
    return BatchInferenceOptions.model_validate(more)


@case_table(__file__, "parameters", file="language_models")
def test_models_have_their_published_parameters(name: str, parameters: int) -> None:
    """Model cards round them to 8.1, 2.5, 8.0, 70.6, 7.6 and 72.7 billion; OPT's names have theirs."""
    assert language_models()[name].parameters == parameters


def test_gpus_share_keys_and_values_by_heads() -> None:
    model = language_models()[QWEN]  # 4 heads with keys
    assert model.kv_bytes(1) == 2 * 2 * 28 * 4 * 128
    assert model.kv_bytes(4) == model.kv_bytes(1) // 4
    assert model.kv_bytes(28) == model.kv_bytes(4), "several GPUs have the same head"


@case_table(__file__, "fits", file="language_models")
def test_knows_which_models_fit(given: dict[str, Any], size: str, gpus: int, fits: bool) -> None:
    assert memory.fits(options(**given), sku(size), gpus) is fits


def test_computes_the_largest_number_of_parallel_prompts() -> None:
    given = options(concurrency=10**6, prompts=10**6, inputLength=4000, outputLength=96)
    most = memory.most_at_once(given, sku(H100), 1)
    assert memory.fits(given.model_copy(update={"concurrency": most}), sku(H100), 1)
    assert not memory.fits(given.model_copy(update={"concurrency": most + 1}), sku(H100), 1)
    assert memory.most_at_once(options(model=LLAMA), sku(H100), 1) == 0


@pytest.mark.parametrize(("model", "gpus"), [(GRANITE, [1, 2, 4, 8]), (QWEN, [1, 2, 4]), (LLAMA, [1, 2, 4, 8])])
def test_knows_which_numbers_of_gpus_can_share_a_model(model: str, gpus: list[int]) -> None:
    assert [count for count in range(1, 9) if memory.shares(options(model=model), count)] == gpus


@case_table(__file__, "slips", file="language_models")
def test_recognizes_misspelt_models(name: str, meant: str) -> None:
    assert misspelt(name)[:1] == [meant]


@pytest.mark.parametrize("name", CASES["others"])
def test_other_models_are_not_misspelt(name: str) -> None:
    assert misspelt(name) == []
