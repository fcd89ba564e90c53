"""The teacher: which model it is, what it reads, and that what it says is about the policy's own tokens."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from letter_env import LetterEnv
from row_trainer import row_trainer
from training_rows import few_rows, row
from transformers import AutoModelForCausalLM, AutoTokenizer

from rstar2_env.core.episode import Episode, Message
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.row import Row
from rstar2_env.problems import Problem, load_problems
from rstar2_env.rollout import ChatCodec
from rstar2_env.trainers.backends.reference.step import log_probs
from rstar2_env.trainers.backends.trl.loss.objective import Objective
from rstar2_env.trainers.backends.trl.loss.teacher import PrivilegedPrompt, Teacher, load_teacher
from rstar2_env.trainers.base import TRAINERS
from rstar2_env.trainers.demonstration.tiny import make_tiny_model
from rstar2_env.trainers.losses.aggregations import TokenMean
from rstar2_env.trainers.losses.corrections import NoCorrection
from rstar2_env.trainers.losses.opd import Opd

pytestmark = pytest.mark.train


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    return make_tiny_model(tmp_path_factory.mktemp("teacher"), hidden=64, layers=1, seed=5)


@pytest.fixture(scope="module")
def loaded(tiny_model):
    return AutoModelForCausalLM.from_pretrained(tiny_model), AutoTokenizer.from_pretrained(tiny_model)


def config(recipe="opd", **options):
    return TRAINERS.get(recipe).configure({"model": "m", "env_options": {"problems": "arithmetic:level=1"}}, options)


def distilled(tiny_model, folder, rows, teacher):
    """Two rollouts of the same rows, and what was logged."""
    objective = Objective([Opd()], TokenMean(), NoCorrection())
    trainer, followed = row_trainer(
        tiny_model, folder, [rows(), rows()], objective=objective, teacher=teacher, learning_rate=1e-2
    )
    seen = []
    collect = trainer.collector.collect
    trainer.collector.collect = lambda step: seen.append(collect(step)) or seen[-1]
    trainer.train()
    return seen[0].rows, followed.lines


def test_it_is_asked_about_the_policys_own_tokens_and_the_policy_moves_towards_it(tiny_model, other, tmp_path):
    model = AutoModelForCausalLM.from_pretrained(other)
    rows, lines = distilled(
        tiny_model, tmp_path, few_rows, lambda policy: Teacher(model, torch.float32, 1.0, copied=False)
    )
    alone = AutoModelForCausalLM.from_pretrained(other)
    for one in rows:
        chosen = np.array(one.mask, dtype=bool)
        expected = log_probs(alone, one).detach().numpy()
        np.testing.assert_allclose(one.columns["teacher"][chosen], expected[chosen], rtol=1e-4)
    assert lines[1]["teacher_kl"] < lines[0]["teacher_kl"]
    assert not any(weights.requires_grad for weights in model.parameters())


def test_the_policy_may_be_its_own_teacher_as_it_was_at_the_start_and_with_adapters(tiny_model, tmp_path):
    def rows():
        return [row(0, 4, 9, 1.0), row(1, 4, 9, 1.0)]

    for lora in (False, True):
        objective = Objective([Opd()], TokenMean(), NoCorrection())
        trainer, followed = row_trainer(
            tiny_model,
            tmp_path / str(lora),
            [rows()],
            objective=objective,
            teacher=lambda policy: Teacher(policy, torch.float32, 1.0, prompt=lambda one: [40, *one.prompt_ids]),
            lora=lora,
        )
        trainer.train()
        assert followed.lines[0]["teacher_kl"] > 0, "it read one token more than the policy did"


def test_it_reads_the_answer_after_the_users_message(loaded):
    chat, problems = ChatCodec(loaded[1]), load_problems("arithmetic:level=1")
    problem = problems[3]
    messages = [Message("system", "Be brief."), Message("user", problem.question), Message("assistant", "x")]
    ids = chat.prompt("Be brief.", problem.question)
    episode = Episode(problem_id=problem.id, messages=messages, prompt_ids=ids)
    told = PrivilegedPrompt(" It is {answer}, by {expression}.", problems, chat)
    hint = f" It is {problem.answer}, by {problem.meta['expression']}."
    expected = chat.prompt("Be brief.", problem.question + hint)
    assert told(Row(episode, ids, [5], [1], [0.0])) == expected
    # The row of a later turn keeps what came between.
    assert told(Row(episode, [*ids, 7, 8], [5], [1], [0.0], start=2)) == [*expected, 7, 8]
    with pytest.raises(ConfigurationError, match="rows with other prompts"):
        told(Row(episode, ids[1:], [5], [1], [0.0]))
    with pytest.raises(ConfigurationError, match=r"'solution'.*answer, expression, .*, question"):
        PrivilegedPrompt("{solution}", problems, chat).text(problem)
    assert PrivilegedPrompt("{solution}", problems, chat).text(Problem("p", "q", "a", meta={"solution": "s"})) == "s"


def test_the_options_name_it(loaded, other, tiny_model):
    model, tokenizer = loaded
    found = load_teacher(config(teacher=str(other)), model, tokenizer, {"teacher"})
    assert found.model.config.hidden_size == 64
    own = load_teacher(config("opsd"), model, tokenizer, {"teacher"})
    assert own.model is not model
    assert own.model.config.hidden_size == model.config.hidden_size
    assert load_teacher(config(), model, tokenizer, {"teacher"}, given=True) is None


@pytest.mark.parametrize(
    ("options", "needs", "words"),
    [
        ({}, {"teacher"}, "needs a teacher model: set"),
        ({"teacher": "self"}, set(), "no term of the loss uses"),
        ({"teacher_prompt": "x"}, set(), "but no teacher is set"),
        ({"teacher": "no/such-folder"}, {"teacher"}, "cannot be loaded"),
        (
            {"teacher": "self", "teacher_prompt": "x", "env": LetterEnv},
            {"teacher"},
            "not have a source of problems",
        ),
    ],
)
def test_what_cannot_be_is_said(loaded, options, needs, words):
    made = TRAINERS.get("opd").configure({"model": "m"}, options)
    with pytest.raises(ConfigurationError, match=words):
        load_teacher(made, *loaded, needs)


def test_a_teacher_of_another_tokenizer_is_refused(loaded, other, tmp_path):
    model, tokenizer = loaded
    changed = AutoTokenizer.from_pretrained(other)
    changed.add_tokens(["<new>"])
    AutoModelForCausalLM.from_pretrained(other).save_pretrained(tmp_path)
    changed.save_pretrained(tmp_path)
    with pytest.raises(ConfigurationError, match=r"a different tokenizer from the model that is trained: 1 of .*<new>"):
        load_teacher(config(teacher=str(tmp_path)), model, tokenizer, {"teacher"})
