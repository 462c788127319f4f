from __future__ import annotations

import contextlib
import gzip
import os
import struct
import subprocess
import sys
from array import array
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.host.paths import ROOT
from tests.support.case_files import case_table
from tests.support.docker_modules import imported

IMAGE = ROOT / "docker/pytorch-pretraining"
SMALL, LARGE = 50257, 128256
"""Vocabularies with tokens of 16 and 32 bits."""
TOKENS = [(token * 7919 + 12) % SMALL for token in range(3000)]


@pytest.fixture(scope="module")
def files() -> Any:
    return imported("pytorch-pretraining", "pretraining.token_files")


def packed(kind: str, tokens: list[int] = TOKENS) -> bytes:
    return struct.pack(f"{kind[0]}{len(tokens)}{kind[1]}", *tokens)


def llm_c(magic: int, kind: str, version: int = 1) -> bytes:
    return struct.pack("<256i", magic, version, len(TOKENS), *[0] * 253) + packed(kind)


def check(files: Any, folder: Path, vocabulary: int) -> list[str]:
    return [file.name for file in files.found(folder, files.bytes_of_token(vocabulary), vocabulary)]


@pytest.mark.parametrize(("kind", "vocabulary"), [("<H", SMALL), ("<I", LARGE)])
def test_reads_little_endian_numbers_without_a_header(files: Any, tmp_path: Path, kind: str, vocabulary: int) -> None:
    (tmp_path / "a.bin").write_bytes(packed(kind))
    (tmp_path / "b.bin").write_bytes(packed(kind, [0] * 64))
    (tmp_path / "empty.bin").touch()
    (tmp_path / "tokenizer.json").write_text("{}")
    assert check(files, tmp_path, vocabulary) == ["a.bin", "b.bin"]


@pytest.mark.parametrize(
    ("content", "vocabulary", "message"),
    [
        (packed("<I"), SMALL, r"a.bin has 32 bits per token, and 16 are read .*: python -c .*<u4.*<u2"),
        (packed("<q"), SMALL, "a.bin has 64 bits per token, and 16 are read .*<u8.*<u2"),
        (packed("<q"), LARGE, "a.bin has 64 bits per token, and 32 are read .*<u8.*<u4"),
        (packed(">I"), SMALL, "a.bin has 32 bits per token, and 16 are read .*>u4.*<u2"),
        (packed(">q"), SMALL, "a.bin has 64 bits per token, and 16 are read .*>u8.*<u2"),
        (packed(">q"), LARGE, "a.bin has 64 bits per token, and 32 are read .*>u8.*<u4"),
        (packed("<I", [100_000, *TOKENS]), SMALL, "32 bits.*: `vocabulary` must be at least 100001"),
        (packed("<H"), LARGE, "a.bin: token .* is not in a vocabulary of 128256: if .* 16 bits per token, run python"),
        (packed("<H", [token % 200 for token in TOKENS]), LARGE, "a.bin: token .*: if the file has 16 bits per token"),
        (packed(">H"), SMALL, "a.bin: token .*: the file is big-endian: python .*>u2.*<u2"),
        (packed(">I"), LARGE, "a.bin: token .*: the file is big-endian: python .*>u4.*<u4"),
        (packed("<H", [*[7] * 2000, 50300, *[7] * 2000]), SMALL, "token 50300, at 2000, .*must be at least 50301"),
        (packed("<H", [*[7] * 90_000, 65535]), SMALL, "token 65535, at 90000, "),
        (b"\x93NUMPY\1\0\x76\0" + b" " * 118 + packed("<H"), SMALL, "a.bin begins with a header of numpy.*numpy.load"),
        (llm_c(20240520, "<H"), SMALL, r"header of llm.c, .*: tail -c \+1025 .*a.bin > .*a.bare.bin"),
        *((llm_c(20240801, "<I", 7), size, r"header of llm.c, .*: tail -c \+1025 ") for size in (SMALL, LARGE)),
        (llm_c(20240522, "<H"), SMALL, "a.bin is an evaluation of llm.c"),
        (llm_c(20240326, "<I", 3), SMALL, "a.bin is a model of llm.c"),
        (b"MMIDIDX\0\0" + bytes(32), SMALL, "index of a Megatron dataset"),
        (gzip.compress(packed("<H"), mtime=0), SMALL, "a.bin is compressed; .*: gunzip < "),
        (b"\x04\x22M\x18" + packed("<H"), SMALL, "a.bin is compressed; .*: unlz4 < "),
        (b"\x80\x02\x8a\nl\xfcF\xf9j" + packed("<H"), SMALL, "a.bin is a checkpoint of torch"),
        (b"GGUF\3\0\0\0" + packed("<H"), SMALL, "a.bin is a model of llama.cpp"),
        (b"\x10\0\0\0\0\0\0\0" + b'{"a":{}}' + packed("<H"), SMALL, "a.bin is a model in the format safetensors"),
        (b"ARROW1\0\0" + packed("<H"), SMALL, "a.bin is Arrow"),
        (b"PK\3\4" + bytes(60), SMALL, "a.bin is a zip archive"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0", SMALL, "a.bin is text"),
        (b"Once upon a time, there was", SMALL, "a.bin is text"),
        ("\ufeff" + "hello world this is text\n" * 101, SMALL, r"a.bin is text \(UTF-8 with a byte-order mark\)"),
        ("\ufeff<?xml?><Error><Code>AuthenticationFailed</Code></Error>", SMALL, "a.bin is text .UTF-8 with"),
        ('{"text":"héllo wörld"}\n' * 100, SMALL, r"a.bin is text \(UTF-8\)"),
        ("Привет, 世界 🙂\n" * 2000, SMALL, r"a.bin is text \(UTF-8\)"),
        ("déjà vu, où était-ce?\n".encode("latin-1") * 100, SMALL, "a.bin is text .neither ASCII nor Unicode"),
        ("今日は、世界\n".encode("gbk") * 100, SMALL, "a.bin is text .neither ASCII nor Unicode"),
        *((("\ufeff" + text * 200).encode(f"utf-16-{order}"), size, r"a.bin is text \(UTF-16\)")
          for text in ("Once upon a time\n", "世界 🙂\r\n") for order in ("le", "be") for size in (SMALL, LARGE)),
        (packed("<H")[:-1], SMALL, "a.bin of .*: the size is not a multiple of 16 bits"),
        (packed("<H", TOKENS[:1]), LARGE, "a.bin of .*: the size is not a multiple of 32 bits"),
        (b"", SMALL, "all files of .* are empty"),
    ],
)  # fmt: skip
def test_rejects_other_formats_by_name(
    files: Any, tmp_path: Path, content: bytes | str, vocabulary: int, message: str
) -> None:
    (tmp_path / "a.bin").write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(files.DataError, match=message):
        check(files, tmp_path, vocabulary)


@case_table(__file__, "ignored")
def test_rejects_files_with_other_names(files: Any, tmp_path: Path, names: list[str], message: str) -> None:
    for name in names:
        (tmp_path / name).write_bytes(packed("<H"))
    with pytest.raises(files.DataError, match=message):
        check(files, tmp_path, SMALL)


@given(st.binary(max_size=400), st.sampled_from([SMALL, LARGE]))
def test_reads_or_rejects_any_bytes(
    files: Any, tmp_path_factory: pytest.TempPathFactory, content: bytes, vocabulary: int
) -> None:
    folder = tmp_path_factory.getbasetemp() / "any"
    folder.mkdir(exist_ok=True)
    (folder / "a.bin").write_bytes(content)
    with contextlib.suppress(files.DataError):
        check(files, folder, vocabulary)


@given(st.lists(st.integers(0, SMALL - 1), min_size=64, max_size=300))
def test_accepts_all_valid_tokens(files: Any, tmp_path_factory: pytest.TempPathFactory, tokens: list[int]) -> None:
    folder = tmp_path_factory.getbasetemp() / "tokens"
    folder.mkdir(exist_ok=True)
    (folder / "a.bin").write_bytes(array("H", [*tokens, *range(4, 68)]).tobytes())
    assert check(files, folder, SMALL) == ["a.bin"]


@given(st.randoms(use_true_random=True), st.sampled_from([("<H", SMALL), ("<H", 2**16), ("<I", LARGE)]))
def test_random_tokens_are_not_text(
    files: Any, tmp_path_factory: pytest.TempPathFactory, random: Random, form: tuple[str, int]
) -> None:
    """Tokens with a byte-order mark's bytes are no text either."""
    kind, vocabulary = form
    folder = tmp_path_factory.getbasetemp() / "random"
    folder.mkdir(exist_ok=True)
    tokens = [random.randrange(vocabulary) for _ in range(256)]
    marks = [[mark] for mark in (0xBBEF, 0xFEFF, 0xFFFE) if mark < vocabulary]
    for start in ([], *marks):
        (folder / "a.bin").write_bytes(packed(kind, [*start, *tokens]))
        (folder / "b.bin").write_bytes(packed(kind, [0xA9C3] * 5000))  # an é each, but one token
        assert check(files, folder, vocabulary) == ["a.bin", "b.bin"]


def test_the_command_checks_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(packed("<I"))
    command = [sys.executable, "-m", "pretraining.token_files", str(tmp_path)]
    options: dict[str, Any] = {"env": {**os.environ, "PYTHONPATH": str(IMAGE)}, "capture_output": True, "text": True}
    assert subprocess.run([*command, str(LARGE)], **options).stdout == "3,000 tokens\n"
    answer = subprocess.run(command, **options)
    assert (answer.returncode, "32 bits per token" in answer.stderr) == (1, True)
