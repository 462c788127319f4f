"""The LoRA loop computes the same as peft, and continues with the same numbers after it was killed; on the CPU.

`make test-training` runs these tests. They need torch, transformers, peft and accelerate.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from peft import PeftModel
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoModelForCausalLM, LlamaConfig, OPTConfig, PreTrainedTokenizerFast

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docker" / "ray-finetuning"))
from finetuning import data, model, train
from finetuning.lines import pack

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docker" / "ray-finetuning"
WORDS = [f"w{number}" for number in range(60)]
SMALL = "--rank 4 --pack 256 --longest 64 --batch 4 --evaluation 8 --rate 1e-2 --warmup 5".split()  # noqa: SIM905 - as on the command line
OFTEN = ["--log-steps", "5", "--checkpoint-steps", "10"]
TWO = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
CONFIGS = {
    "opt": OPTConfig(
        vocab_size=64,
        hidden_size=32,
        word_embed_proj_dim=32,
        ffn_dim=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=64,
    ),
    "llama": LlamaConfig(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
    ),
}


def saved(folder: Path, kind: str = "opt") -> Path:
    torch.manual_seed(0)
    made = AutoModelForCausalLM.from_config(CONFIGS[kind])
    for each in made.parameters():
        torch.nn.init.normal_(each, std=0.2)
    made.save_pretrained(folder)
    words = Tokenizer(models.WordLevel({word: at for at, word in enumerate(["</s>", "<unk>", *WORDS])}, "<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=words, eos_token="</s>", unk_token="<unk>").save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("opt"))


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The completions have the words of the prompts backwards."""
    chance, file = np.random.default_rng(1), tmp_path_factory.mktemp("data") / "a.jsonl"
    words = [[str(each) for each in chance.choice(WORDS, chance.integers(4, 24))] for _ in range(300)]
    examples = [{"prompt": " ".join(each), "completion": " ".join(reversed(each))} for each in words]
    file.write_text("\n".join(json.dumps(each) for each in examples))
    return file


def command(model: Path, output: Path, *options: str, processes: int = 1) -> list[str]:
    start = [sys.executable, *(TWO if processes == 2 else [])]
    return [*start, "-m", "finetuning.train", "--model", str(model), "--output", str(output), *SMALL, *OFTEN, *options]


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1"}


def tuned(model: Path, output: Path, *options: str, processes: int = 1) -> subprocess.CompletedProcess[str]:
    argv = command(model, output, *options, processes=processes)
    return subprocess.run(argv, cwd=FOLDER, env=environment(), capture_output=True, text=True, check=False)


def check_error(message: str, capsys: pytest.CaptureFixture[str], model: Path, output: Path, *options: str) -> None:
    capsys.readouterr()
    code, error = train.main(command(model, output, *options)[3:]), capsys.readouterr().err
    assert (code, message in error, error.count("\n")) == (2, True, 1), error


def losses(folder: Path) -> dict[int, float]:
    found = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return {each["step"]: each["loss"] for each in found}


def result(folder: Path) -> dict[str, float]:
    return json.loads((folder / "result.json").read_text())


def wait_for_checkpoint(training: subprocess.Popen[str], folder: Path) -> None:
    while not list(folder.glob("checkpoints/step-*.pt")):
        assert training.poll() is None
        time.sleep(0.02)


def learner(kind: str, folder: Path, size: int = 128) -> Any:
    """Returns the loop's learner and the model, whose adapter is not zero."""
    made = model.adapted(model.load(str(saved(folder, kind)), torch.device("cpu")), 4, 8, ["q_proj", "v_proj"])
    torch.manual_seed(1)
    for name, each in made.named_parameters():
        if "lora" in name:
            torch.nn.init.normal_(each, std=0.2)
    return model.Learner(made, size, 64), made


@pytest.fixture(scope="module")
def complete(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("complete")
    answer = tuned(base, folder)
    assert answer.returncode == 0, answer.stderr
    return folder


def test_learns(complete: Path) -> None:
    found = result(complete)
    assert found["before"] > found["after"] > math.log(4), "four tokens may follow each: no loss is below their entropy"


@pytest.mark.parametrize("kind", list(CONFIGS))
def test_packed_sequences_are_independent(tmp_path: Path, kind: str) -> None:
    ours, _ = learner(kind, tmp_path)
    examples = data.synthetic(64, 1, 3, (20, 40))
    apart = [ours.loss([each], 1.0, learn=False).item() for each in examples]
    together = ours.loss(examples, 1.0, learn=False).item()
    assert together == pytest.approx(sum(apart), rel=1e-5)


@pytest.mark.parametrize("kind", list(CONFIGS))
def test_loss_and_gradients_equal_pefts(tmp_path: Path, kind: str) -> None:
    """The batch has padding, and prompts that are not trained on."""
    ours, adapted = learner(kind, tmp_path)
    adapted.save_pretrained(tmp_path / "adapter")
    plain = AutoModelForCausalLM.from_pretrained(tmp_path)
    theirs = PeftModel.from_pretrained(plain, tmp_path / "adapter", is_trainable=True)
    made, prompts = data.synthetic(64, 1, 3, (20, 40)), (1, 7, 19)
    examples = [data.Example(each.tokens, first) for each, first in zip(made, prompts, strict=True)]
    tokens, labels, mask = (torch.full((3, 40), filled) for filled in (0, data.IGNORED, 0))
    for row, each in enumerate(examples):
        stop = len(each.tokens)
        tokens[row, :stop], mask[row, :stop] = torch.from_numpy(each.tokens), 1
        labels[row, each.first : stop] = torch.from_numpy(each.tokens[each.first :])
    reference = theirs.eval()(input_ids=tokens, labels=labels, attention_mask=mask).loss
    reference.backward()
    loss = ours.loss(examples, 1 / sum(each.learnt for each in examples), learn=True)
    assert loss.item() == pytest.approx(reference.item(), rel=1e-5)
    own = dict(theirs.named_parameters())
    found = {name: each.grad for name, each in adapted.named_parameters() if each.grad is not None}
    assert len(found) == 8
    for name, gradient in found.items():
        torch.testing.assert_close(gradient, own[name].grad, rtol=1e-3, atol=1e-6)


def test_peft_loads_the_saved_adapter(base: Path, lines: Path, tmp_path: Path) -> None:
    argv = command(base, tmp_path, "--data", str(lines), "--epochs", "4")
    answer = subprocess.run(argv, cwd=FOLDER, env=environment(), capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    chosen = train.parser().parse_args(argv[3:])
    held = train.Training(chosen, model.load(str(base), torch.device("cpu")), train.examples_of(chosen, 64)).held
    theirs = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base), tmp_path / "adapter").eval()
    total = 0.0
    for each in held:
        labels = torch.from_numpy(each.tokens)[None].clone()
        labels[:, : each.first] = data.IGNORED
        total += theirs(input_ids=torch.from_numpy(each.tokens)[None], labels=labels).loss.item() * each.learnt
    found = result(tmp_path)
    assert found["after"] < found["before"]
    assert total / sum(each.learnt for each in held) == pytest.approx(found["after"], rel=1e-5)


@pytest.mark.parametrize("processes", [1, 2])
def test_a_killed_training_continues_to_the_same_loss(
    base: Path, complete: Path, tmp_path: Path, processes: int
) -> None:
    """Another number of processes reads the same checkpoint, and only sums in another order."""
    started = subprocess.Popen(command(base, tmp_path), cwd=FOLDER, env=environment(), text=True)
    wait_for_checkpoint(started, tmp_path)
    started.kill()
    started.wait()
    assert not (tmp_path / "result.json").exists()
    answer = tuned(base, tmp_path, processes=processes)
    assert "from step 0" not in answer.stdout
    assert result(tmp_path)["before"] == result(complete)["before"]
    if processes == 1:
        assert (losses(tmp_path), result(tmp_path)) == (losses(tmp_path) | losses(complete), result(complete))
    assert result(tmp_path)["after"] == pytest.approx(result(complete)["after"], rel=1e-3)


def test_saves_its_step_at_sigterm(base: Path, tmp_path: Path) -> None:
    started = subprocess.Popen(
        command(base, tmp_path, "--epochs", "1000"), cwd=FOLDER, env=environment(), stdout=subprocess.PIPE, text=True
    )
    wait_for_checkpoint(started, tmp_path)
    started.send_signal(signal.SIGTERM)
    log, _ = started.communicate(timeout=60)
    assert started.returncode == 143
    step = int(log.rstrip().rpartition("step ")[2].partition(" ")[0])
    assert (tmp_path / "checkpoints" / f"step-{step}.pt").is_file()


def test_ignores_incomplete_checkpoints(base: Path, complete: Path, tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "step-50.pt.unfinished").write_bytes(b"half of")
    assert tuned(base, tmp_path).returncode == 0
    assert losses(tmp_path) == losses(complete)


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        (["--rank", "8"], "opt", "rank is 4 instead of 8"),
        (["--seed", "2"], "opt", "seed is 1 instead of 2"),
        ([], "llama", "model_type is opt instead of llama"),
    ],
)
def test_rejects_the_checkpoint_of_another_training(
    complete: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], kind: str, message: str
) -> None:
    check_error(message, capsys, saved(tmp_path, kind), complete, *options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--longest", "80"], "max_position_embeddings is 64"),
        (["--targets", "nothing"], "the adapter cannot be added"),
    ],
)
def test_rejects_options_that_do_not_fit_the_model(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    check_error(message, capsys, base, tmp_path, *options)


def test_rejects_a_batch_that_the_processes_cannot_share(base: Path, tmp_path: Path) -> None:
    answer = tuned(base, tmp_path, "--batch", "3", processes=2)
    assert answer.returncode != 0
    assert "use --batch 4" in answer.stderr


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (None, "does not exist"),
        ('{"prompt": "' + "w1 " * 70 + '", "completion": "w2"}', "so no completion is left"),
    ],
)
def test_rejects_useless_files(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], lines: str | None, message: str
) -> None:
    file = tmp_path / "a.jsonl"
    if lines is not None:
        file.write_text(lines)
    check_error(message, capsys, base, tmp_path, "--data", str(file))


def test_rejects_a_model_that_does_not_exist(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check_error("cannot be loaded", capsys, tmp_path / "none", tmp_path)


def test_rejects_a_model_with_another_loss(tmp_path: Path) -> None:
    """A model that caps its logits is an example, because the loop computes them itself."""
    ours, adapted = learner("llama", tmp_path)
    ours.scale = 0.5
    with pytest.raises(model.ModelError, match="models of type llama are not supported"):
        ours.check(data.synthetic(64, 1, 1, (40, 40))[0])


def test_packs_rows_nearly_full() -> None:
    lengths = np.random.default_rng(1).integers(256, 2048, 2000)
    rows = pack(lengths, range(2000), 16384)
    assert sorted(each for row in rows for each in row) == list(range(2000))
    assert max(sum(lengths[row]) for row in rows) <= 16384
    assert lengths.sum() > 0.97 * 16384 * len(rows)


def test_two_workers_on_ray_learn_the_same(base: Path, complete: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    arguments = command(base, tmp_path, "--workers", "2")
    arguments[arguments.index("finetuning.train")] = "finetuning.ray_train"
    around = {**environment(), "PYTHONPATH": str(FOLDER)}
    answer = subprocess.run(arguments, cwd=FOLDER, env=around, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    assert result(tmp_path)["after"] == pytest.approx(result(complete)["after"], rel=1e-3)


def test_the_benchmark_compares_equal_computations() -> None:
    argv = [sys.executable, str(ROOT / "benchmarks" / "finetuning.py"), "check"]
    answer = subprocess.run(argv, env=environment(), capture_output=True, text=True, check=False)
    found = json.loads(answer.stdout)
    assert found["ours"] == pytest.approx(found["peft"], rel=1e-5)
    assert found["gradients_apart"] < 1e-4
