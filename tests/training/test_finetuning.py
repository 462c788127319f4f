"""The LoRA loop, on the CPU: what it computes is peft's, and it goes on to the same numbers when it is killed.

`make test-training` runs it where torch, transformers, peft and accelerate are.
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
    """A model with random weights, large enough to differ, and a tokenizer of words."""
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
    """Prompts of some words, completed by the same words backwards."""
    chance, file = np.random.default_rng(1), tmp_path_factory.mktemp("data") / "a.jsonl"
    said = [[str(each) for each in chance.choice(WORDS, chance.integers(4, 24))] for _ in range(300)]
    found = [{"prompt": " ".join(each), "completion": " ".join(reversed(each))} for each in said]
    file.write_text("\n".join(json.dumps(each) for each in found))
    return file


def command(model: Path, output: Path, *options: str, processes: int = 1) -> list[str]:
    start = [sys.executable, *(TWO if processes == 2 else [])]
    return [*start, "-m", "finetuning.train", "--model", str(model), "--output", str(output), *SMALL, *OFTEN, *options]


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1"}


def tuned(model: Path, output: Path, *options: str, processes: int = 1) -> subprocess.CompletedProcess[str]:
    argv = command(model, output, *options, processes=processes)
    return subprocess.run(argv, cwd=FOLDER, env=environment(), capture_output=True, text=True, check=False)


def refused(told: str, capsys: pytest.CaptureFixture[str], model: Path, output: Path, *options: str) -> None:
    """With one line, in this process."""
    capsys.readouterr()
    code, said = train.main(command(model, output, *options)[3:]), capsys.readouterr().err
    assert (code, told in said, said.count("\n")) == (2, True, 1), said


def losses(folder: Path) -> dict[int, float]:
    """By step."""
    found = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return {each["step"]: each["loss"] for each in found}


def result(folder: Path) -> dict[str, float]:
    return json.loads((folder / "result.json").read_text())


def wait_for_checkpoint(training: subprocess.Popen[str], folder: Path) -> None:
    while not list(folder.glob("checkpoints/step-*.pt")):
        assert training.poll() is None
        time.sleep(0.02)


def learner(kind: str, folder: Path, size: int = 128) -> Any:
    """Ours of a model whose adapter is not zero, and the model."""
    made = model.adapted(model.load(str(saved(folder, kind)), torch.device("cpu")), 4, 8, ["q_proj", "v_proj"])
    torch.manual_seed(1)
    for name, each in made.named_parameters():
        if "lora" in name:
            torch.nn.init.normal_(each, std=0.2)
    return model.Learner(made, size, 64), made


@pytest.fixture(scope="module")
def whole(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What an unbroken run leaves; its data are synthetic."""
    folder = tmp_path_factory.mktemp("whole")
    answer = tuned(base, folder)
    assert answer.returncode == 0, answer.stderr
    return folder


def test_it_learns(whole: Path) -> None:
    found = result(whole)
    assert found["before"] > found["after"] > math.log(4), "four tokens may follow each: no loss is below their entropy"


@pytest.mark.parametrize("kind", list(CONFIGS))
def test_packed_sequences_do_not_see_each_other(tmp_path: Path, kind: str) -> None:
    ours, _ = learner(kind, tmp_path)
    examples = data.synthetic(64, 1, 3, (20, 40))
    apart = [ours.loss([each], 1.0, learn=False).item() for each in examples]
    together = ours.loss(examples, 1.0, learn=False).item()
    assert together == pytest.approx(sum(apart), rel=1e-5)


@pytest.mark.parametrize("kind", list(CONFIGS))
def test_loss_and_gradients_are_those_of_peft(tmp_path: Path, kind: str) -> None:
    """Of a padded batch whose prompts are not learnt."""
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


def test_what_it_saves_peft_loads(base: Path, lines: Path, tmp_path: Path) -> None:
    """Its loss of what was not learnt is the same, sequence by sequence, in peft's own hands."""
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
def test_one_that_is_killed_goes_on_to_the_same_loss(base: Path, whole: Path, tmp_path: Path, processes: int) -> None:
    """With another number of processes it reads the same checkpoint, and sums in another order."""
    started = subprocess.Popen(command(base, tmp_path), cwd=FOLDER, env=environment(), text=True)
    wait_for_checkpoint(started, tmp_path)
    started.kill()
    started.wait()
    assert not (tmp_path / "result.json").exists()
    answer = tuned(base, tmp_path, processes=processes)
    assert "from step 0" not in answer.stdout
    assert result(tmp_path)["before"] == result(whole)["before"]
    if processes == 1:
        assert (losses(tmp_path), result(tmp_path)) == (losses(tmp_path) | losses(whole), result(whole))
    assert result(tmp_path)["after"] == pytest.approx(result(whole)["after"], rel=1e-3)


def test_one_that_is_told_to_stop_saves_its_step(base: Path, tmp_path: Path) -> None:
    started = subprocess.Popen(
        command(base, tmp_path, "--epochs", "1000"), cwd=FOLDER, env=environment(), stdout=subprocess.PIPE, text=True
    )
    wait_for_checkpoint(started, tmp_path)
    started.send_signal(signal.SIGTERM)
    said, _ = started.communicate(timeout=60)
    assert started.returncode == 143
    step = int(said.rstrip().rpartition("step ")[2].partition(" ")[0])
    assert (tmp_path / "checkpoints" / f"step-{step}.pt").is_file()


def test_a_checkpoint_that_was_broken_off_is_passed_over(base: Path, whole: Path, tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "step-50.pt.unfinished").write_bytes(b"half of")
    assert tuned(base, tmp_path).returncode == 0
    assert losses(tmp_path) == losses(whole)


@pytest.mark.parametrize(
    ("options", "kind", "told"),
    [
        (["--rank", "8"], "opt", "rank 4 and not 8"),
        (["--seed", "2"], "opt", "seed 1 and not 2"),
        ([], "llama", "model_type opt and not llama"),
    ],
)
def test_a_checkpoint_of_another_training_is_refused(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], kind: str, told: str
) -> None:
    refused(told, capsys, saved(tmp_path, kind), whole, *options)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--pack", "32"], "no room for an example of 64"),
        (["--longest", "80"], "max_position_embeddings is 64"),
        (["--evaluation", "5000"], "--evaluation is 5000, and may be 0 to 2047"),
        (["--targets", "nothing"], "no adapter"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], told: str
) -> None:
    refused(told, capsys, base, tmp_path, *options)


def test_a_batch_that_does_not_divide_is_refused_with_what_would(base: Path, tmp_path: Path) -> None:
    answer = tuned(base, tmp_path, "--batch", "3", processes=2)
    assert answer.returncode != 0
    assert "take --batch 4" in answer.stderr


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (None, "is not there"),
        ("", "is empty"),
        ('{"text": "w1 w2"}\nno', "a.jsonl:2: not JSON"),
        ('{"words": "w1"}', "a.jsonl:1: neither `text` nor"),
        ('{"prompt": "' + "w1 " * 70 + '", "completion": "w2"}', "nothing of a completion is left"),
        ('{"text": "w1 w2"}', "--evaluation is 8, and may be 0"),
    ],
)
def test_files_that_are_of_no_use_are_refused(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], lines: str | None, told: str
) -> None:
    file = tmp_path / "a.jsonl"
    if lines is not None:
        file.write_text(lines)
    refused(told, capsys, base, tmp_path, "--data", str(file))


def test_a_folder_without_files_is_refused(base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused("has no file *.jsonl", capsys, base, tmp_path / "output", "--data", str(tmp_path))


def test_a_model_that_is_not_there_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused("is no model to be had", capsys, tmp_path / "none", tmp_path)


def test_a_model_whose_loss_is_another_is_refused(tmp_path: Path) -> None:
    """As one that caps its logits: the loop makes them itself."""
    ours, adapted = learner("llama", tmp_path)
    ours.scale = 0.5
    with pytest.raises(model.ModelError, match="llama is not for this loop"):
        ours.check(data.synthetic(64, 1, 1, (40, 40))[0])


def test_rows_are_nearly_full() -> None:
    lengths = np.random.default_rng(1).integers(256, 2048, 2000)
    rows = pack(lengths, range(2000), 16384)
    assert sorted(each for row in rows for each in row) == list(range(2000))
    assert max(sum(lengths[row]) for row in rows) <= 16384
    assert lengths.sum() > 0.97 * 16384 * len(rows)


def test_on_ray_two_workers_learn_the_same(base: Path, whole: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    arguments = command(base, tmp_path, "--workers", "2")
    arguments[arguments.index("finetuning.train")] = "finetuning.ray_train"
    around = {**environment(), "PYTHONPATH": str(FOLDER)}
    answer = subprocess.run(arguments, cwd=FOLDER, env=around, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    assert result(tmp_path)["after"] == pytest.approx(result(whole)["after"], rel=1e-3)


def test_the_measure_compares_what_computes_the_same() -> None:
    argv = [sys.executable, str(ROOT / "benchmarks" / "finetuning.py"), "check"]
    answer = subprocess.run(argv, env=environment(), capture_output=True, text=True, check=False)
    found = json.loads(answer.stdout)
    assert found["ours"] == pytest.approx(found["peft"], rel=1e-5)
    assert found["gradients_apart"] < 1e-4
