"""What is asked of Azure before anything is declared, and what becomes of answers that do not come."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from components.arm import Arm, Json, Unread
from config.rules.subscription import Objection


@dataclass(frozen=True)
class Question:
    """What is asked of Azure."""

    about: str
    """As a message calls it that could not be read."""
    paths: tuple[str, ...]
    """Where the answer is; the first that is answered counts."""
    judge: Callable[[Json], Iterable[Objection]]
    absent: str = ""
    """What to say where there is nothing of that kind; empty where that is no reason to stop."""
    list_: str = ""
    """The command that lists what there is."""


def looked_up(asked: Sequence[Question], arm: Arm | Unread) -> Iterator[Objection]:
    """What the answers say of all of them, which are asked for at once."""
    answers = answers_at(arm, [path for question in asked for path in question.paths])
    for question in asked:
        found = [answers[path] for path in question.paths]
        answer = next((each for each in found if not isinstance(each, Unread)), found[-1])
        yield from _unread(question, answer) if isinstance(answer, Unread) else _judged(question, answer)


def answers_at(arm: Arm | Unread, paths: Iterable[str]) -> Mapping[str, Json | Unread]:
    """What is at each path, or why that is not known."""
    return dict.fromkeys(paths, arm) if isinstance(arm, Unread) else arm.get({path: path for path in paths})


def _judged(question: Question, answer: Json) -> Iterable[Objection]:
    try:
        return list(question.judge(answer))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        return _unread(question, Unread(f"an answer of another shape than Azure's ({error})"))


def _unread(question: Question, answer: Unread) -> Iterator[Objection]:
    if question.absent and answer.absent:
        yield Objection(question.absent, (question.list_,) if question.list_ else ())
        return
    what = f"{question.about} could not be looked up in Azure: {answer.why}. It may refuse the update later."
    yield Objection(what, stops=False)
