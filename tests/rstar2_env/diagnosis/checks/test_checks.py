"""Every check names its fault from the step at which it shows, and is silent on the nearest look-alike."""

from __future__ import annotations

import math
from dataclasses import replace
from graphlib import TopologicalSorter

import pytest
from diagnosed import SINCE, change, clean
from diagnosed_cases import CASES

from rstar2_env.core.episode import Episode, Message
from rstar2_env.core.run_folder import EpisodeEntry
from rstar2_env.core.status import ToolStatus
from rstar2_env.diagnosis.base import CHECKS
from rstar2_env.diagnosis.checks.infrastructure import fault_rate
from rstar2_env.diagnosis.examination import every_check, examine
from rstar2_env.diagnosis.facts import facts_of
from rstar2_env.diagnosis.record import RunRecord, StepData


def check(name: str, run: RunRecord):
    """The finding of one check, or None."""
    return next(iter(examine(run, checks=[CHECKS.get(name)])), None)


def test_every_check_has_a_fault_and_a_look_alike() -> None:
    assert set(CASES) == set(CHECKS.names())


def test_the_effects_of_checks_are_checks_and_none_is_its_own_cause() -> None:
    effects = {one.name: one.effects for one in every_check()}
    assert {name for names in effects.values() for name in names} <= set(effects)
    causes = TopologicalSorter(effects)
    causes.prepare()  # raises an error for a cycle


def test_causes_and_explanations_name_no_command_since_they_are_shown_for_logs_of_other_trainers_too() -> None:
    assert [one.name for one in every_check() if "rstar2 " in one.cause + one.otherwise] == []


@pytest.mark.parametrize(
    ("share", "names"), [(1.0, ["cut_by_tokens", "all_wrong"]), (0.4, ["all_wrong", "cut_by_tokens"])]
)
def test_answers_that_are_mostly_cut_come_before_the_wrong_answers_that_they_explain(share, names) -> None:
    def cut(one, draw):
        return replace(one, correct=False, reward=0.0, end="tokens" if draw.random() < share else "answered")

    found = examine(clean(episode=cut), checks=[CHECKS.get("all_wrong"), CHECKS.get("cut_by_tokens")])
    assert found.names == names
    assert [one.caused_by for one in found if one.check == "all_wrong"] == [("cut_by_tokens",) if share == 1 else ()]


def test_a_high_temperature_comes_before_the_wrong_answers_that_it_explains() -> None:
    run = clean(
        episode=change(correct=False, reward=0.0),
        config={"rollout": {"temperature": 3.0}, "eval": {"temperature": 1.0}},
    )
    checks = [CHECKS.get("all_wrong"), CHECKS.get("evaluation_temperature")]
    assert examine(run, checks=checks).names == ["evaluation_temperature", "all_wrong"]


@pytest.mark.parametrize(("tokens", "correct", "named"), [(6, False, True), (60, True, True), (6, True, False)])
def test_identical_episodes_are_named_unless_they_are_short_and_right(tokens, correct, named) -> None:
    same = change(text=lambda one, draw: one.problem, correct=correct, reward=float(correct), tokens=tokens)
    assert (check("episodes_identical", clean(episode=same)) is not None) is named


@pytest.mark.parametrize(("temperature", "first"), [(0.01, "episodes_identical"), (1.0, "entropy_collapsed")])
def test_a_low_entropy_explains_identical_episodes_unless_both_come_from_the_temperature(temperature, first) -> None:
    same = change(text=lambda one, draw: one.problem, correct=False, reward=0.0)
    run = clean(episode=same, policy__entropy=0.001, config={"rollout": {"temperature": temperature}})
    cause, effect = examine(run, checks=[CHECKS.get("entropy_collapsed"), CHECKS.get("episodes_identical")])
    assert (cause.check, cause.caused_by, effect.caused_by) == (first, (), (first,))


def test_identical_episodes_explain_that_no_group_has_a_signal() -> None:
    found = examine(CASES["episodes_identical"][0]())
    assert found.names[0] == "episodes_identical"
    assert all("episodes_identical" in one.caused_by for one in found.findings[1:])
    assert "sampled at temperature 0.01" in found.findings[0].says
    assert found.findings[0].change == ("--set rollout.temperature=1", "--set rollout.top_p=1 --set rollout.top_k=0")


@pytest.mark.parametrize(
    ("correct", "causes"), [(False, ("cut_by_tokens", "all_wrong")), (True, ("all_right",)), (None, ("cut_by_tokens",))]
)
def test_what_makes_answers_wrong_explains_few_signals_unless_their_reason_is_right_answers(correct, causes) -> None:
    def cut(one, draw):
        return replace(one, correct=correct, reward=float(bool(correct)), end="tokens")

    counts = {} if correct is not None else {"groups__signal": 0.0, "groups__all_correct": 0.0, "groups__equal": 8.0}
    names = ("all_right", "all_wrong", "cut_by_tokens", "few_signals")
    found = examine(clean(episode=cut, **counts), checks=[CHECKS.get(name) for name in names])
    assert [one.caused_by for one in found if one.check == "few_signals"] == [causes]


def test_a_constant_reward_is_one_finding() -> None:
    run = clean(episode=change(reward=0.2), since=1, steps=20, groups__signal=0, groups__not_selected=8)
    assert examine(run, checks=[CHECKS.get("few_signals"), CHECKS.get("reward_constant")]).names == ["reward_constant"]


@pytest.mark.parametrize("name", CASES)
def test_a_fault_is_named_with_its_steps_its_figures_and_what_to_change(name) -> None:
    found = check(name, CASES[name][0]())
    assert found is not None
    assert found.until is None
    assert found.says
    assert found.change


@pytest.mark.parametrize("name", CASES)
def test_the_nearest_look_alike_is_not_named(name) -> None:
    alike = CASES[name][1]()
    assert CHECKS.get(name).applies(alike)
    assert CHECKS.get(name).lacks(alike) == []
    assert check(name, alike) is None


@pytest.mark.parametrize("name", ["gradient_zero", "entropy_collapsed", "environment_trained"])
def test_a_check_whose_figure_never_has_a_value_is_not_recorded(name) -> None:
    figure = CHECKS.get(name).needs[0]
    found = examine(clean(steps=8, since=1, **{figure.replace("/", "__"): math.nan}))
    assert found.not_recorded[name] == [figure]


def test_a_loss_that_is_never_a_number_is_named() -> None:
    found = check("gradient_nan", clean(steps=8, since=1, loss=math.nan, grad_norm=math.nan))
    assert (found.since, found.until) == (1, None)


@pytest.mark.parametrize(("value", "until"), [(None, None), (0.4, 40)])
def test_a_loss_that_is_not_a_number_ends_with_the_first_number_and_not_with_a_step_in_progress(value, until) -> None:
    run = clean(loss=math.nan)
    run.add(StepData(41, {} if value is None else {"loss": value}))
    assert check("gradient_nan", run).until == until


@pytest.mark.parametrize(
    ("difference", "explained", "since", "severity"),
    [
        (0.01, 0.002, 1, "warning"),
        (0.3, 0.002, 1, "error"),
        (0.01, 0.1, 1, None),
        (0.01, None, 1, None),
        (0.01, 0.002, SINCE, None),
        (0.3, 0.002, SINCE, "error"),
    ],
)
def test_a_small_difference_from_the_start_is_judged_by_the_precision_of_the_run(
    difference, explained, since, severity
) -> None:
    run = clean(mismatch__logp_difference=difference, policy__lag=0.0, since=since)
    for step in run.steps:
        step.figures["policy/lag"] = 0.0
        if explained is not None:
            step.figures["mismatch/explained"] = explained
    found = check("engine_differs", run)
    assert (found and found.severity) == severity
    assert (found is not None and "explains at most 0.002 nats" in found.says) is (severity == "warning")


@pytest.mark.parametrize(("explained", "named"), [(0.002, True), (0.1, False)])
def test_weights_that_fall_behind_slowly_are_named_in_float32(explained: float, named: bool) -> None:
    run = clean(mismatch__logp_difference=lambda step: 4e-4 * step, policy__lag=0.0, since=1)
    for step in run.steps:
        step.figures["mismatch/explained"] = explained
    assert (check("weights_stale", run) is not None) is named
    assert check("engine_differs", run) is None


def test_weights_that_fall_behind_from_the_second_step_on_are_named_though_the_third_is_far_off() -> None:
    differences = dict(enumerate((1e-7, 0.0227, 0.0346, 0.0375, 0.0505, 0.0428, 0.0576, 0.0634), 1))
    run = clean(steps=8, since=1, mismatch__logp_difference=differences.get, policy__lag=0.0)
    for step in run.steps:
        step.figures["mismatch/explained"] = 5e-4
    assert check("weights_stale", run) is not None


def test_prompts_are_counted_by_the_mark_of_their_episodes() -> None:
    marked = clean(since=1, episode=lambda one, draw: replace(one, cut_prompt=one.step >= SINCE and one.group < 2))
    assert check("prompts_cut", marked).figures["share cut"] == pytest.approx(0.25)
    assert examine(clean(), checks=[CHECKS.get("prompts_cut")]).not_recorded["prompts_cut"] == ["cut_prompt|prompt/cut"]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("which", [0, 1], ids=["fault", "look_alike"])
def test_a_run_in_progress_whose_old_episodes_are_dropped_is_judged_as_the_whole_run(name, which) -> None:
    whole, made = (CASES[name][which]() for _ in range(2))
    run = RunRecord(made.name, made.kind, made.config, resumed=made.resumed, processes=made.processes)
    for step in made.steps:
        run.add(step)
        run.evaluations = [one for one in made.evaluations if one.number <= step.number]
        found = check(name, run)
        if len(run.steps) > 5:
            run.steps[-6].forget()
    expected = check(name, whole)
    assert (found and (found.since, found.until, found.figures)) == (
        expected and (expected.since, expected.until, expected.figures)
    )


@pytest.mark.parametrize(("rejected", "names"), [(8, ["all_rejected"]), (6, [])])
def test_rejected_groups_are_counted_by_figures_in_a_run_without_episodes(rejected, names) -> None:
    run = clean(
        groups__signal=8 - rejected, groups__none_correct=0, groups__all_correct=0, groups__not_selected=rejected
    )
    for step in run.steps:
        step.forget()
    assert examine(run, checks=[CHECKS.get("all_rejected")]).names == names


def test_a_pass_rate_that_rises_by_chance_does_not_excuse_longer_answers() -> None:
    few = {"rollout__tokens": 500, "rollout__pass_rate": 0.6}
    assert check("lengths_explode", clean(**few, rollout__episodes=16)) is not None
    assert check("lengths_explode", clean(**few, rollout__episodes=512)) is None


@pytest.mark.parametrize(("judge", "severity"), [("./mine.py:judge", "note"), (None, None)])
def test_a_component_that_is_always_zero_counts_only_in_a_run_with_a_judge(judge, severity) -> None:
    zero = change(rewards=lambda one, draw: {"return": one.reward, "overlong": 0.0})
    found = check("judge_constant", clean(episode=zero, since=1, config={"rollout": {"judge": judge}}))
    assert (found and found.severity) == severity


@pytest.mark.parametrize(("change", "named"), [(0.4, True), (0.2, False)])
def test_one_step_that_breaks_the_weights_is_enough_if_no_later_step_trains(change: float, named: bool) -> None:
    run = clean(weights__change=lambda step: change if step == SINCE else 0.0)
    found = check("learning_rate_high", run)
    assert (found is not None) is named
    if found is not None:
        assert (found.since, found.until) == (SINCE, SINCE)
        assert found.says.startswith("One step changed the weights by 0.4 times their norm, at a learning rate of ")


def test_adapters_whose_first_steps_are_large_are_not_named() -> None:
    assert check("learning_rate_high", clean(weights__change=lambda step: 0.02 / (step - SINCE + 1))) is None


@pytest.mark.parametrize(("steps", "named"), [(4, False), (5, True)])
def test_a_divergence_that_a_few_tokens_raise_for_some_steps_is_not_named(steps: int, named: bool) -> None:
    run = clean(kl=lambda step: 1.6 if step < SINCE + steps else 0.15)
    assert (check("kl_runs_away", run) is not None) is named


@pytest.mark.parametrize(("speed", "named"), [(500.0, True), (800.0, False)])
def test_throughput_that_falls_together_with_the_speed_of_training_names_possible_causes(speed, named) -> None:
    run = clean(seconds__rollout=9.0)
    for step in run.steps:
        step.figures["speed/train_tokens_per_second"] = 1000.0 if step.number < SINCE else speed
    reason = "training became slower too: perhaps another program on the machine, or episodes of other lengths."
    assert (reason in check("throughput_falls", run).says) is named


def test_one_update_for_each_rollout_never_clips_and_is_not_named() -> None:
    run = clean(clip__low=0, clip__high=0, since=1, config={"optim": {"updates_per_rollout": 1}})
    assert check("clip_never", run) is None


@pytest.mark.parametrize(
    ("loss", "named"),
    [
        ({"name": "cispo", "high": 4.0}, False),
        ({"name": "cispo", "low": 0.2, "high": 4.0}, False),
        ({"name": "ppo_clip", "low": None, "high": None}, False),
        ({"name": "ppo_clip", "low": None, "high": 0.28}, True),
        ({"name": "gmpo", "low": 0.4, "high": 0.4}, True),
    ],
)
def test_only_a_loss_whose_bounds_remove_gradients_can_clip_too_few_or_too_many_tokens(loss, named) -> None:
    config = {"parts": {"loss": [loss, {"name": "kl", "coef": 0.1}]}}
    never = clean(clip__low=0, clip__high=0, since=1, config=config)
    assert (check("clip_never", never) is not None) is named
    assert (check("clip_always", clean(clip__high=0.9, config=config)) is not None) is named


@pytest.mark.parametrize(("share", "named"), [(0.85, False), (0.97, True)])
def test_ratios_of_sequences_are_clipped_more_often(share: float, named: bool) -> None:
    gspo = {"parts": {"loss": [{"name": "ppo_clip", "level": "sequence", "low": 3e-4, "high": 4e-4}]}}
    assert (check("clip_always", clean(clip__high=share, config=gspo)) is not None) is named


def test_a_clean_run_has_no_finding_and_every_check_looked_or_says_what_it_needs() -> None:
    found = examine(clean())
    assert found.names == []
    assert {*found.silent, *found.not_recorded} >= {one.name for one in every_check() if one.applies(clean())}


@pytest.mark.parametrize(
    ("wrapper", "rate"),
    [
        ("fault_injection:rate=0.3,kinds=timeout+lost", 0.3),
        ({"name": "fault_injection", "rate": {"timeout": 0.1, "lost": 0.2}}, 0.3),
        ({"name": "fault_injection", "options": {"rate": 0.25}}, 0.25),
        ("fault_injection:rate=much", 0.0),
        ("feedback", 0.0),
    ],
)
def test_the_rate_of_injected_faults_is_read_from_every_form_of_the_option(wrapper, rate) -> None:
    assert fault_rate(clean(steps=1, config={"rollout": {"wrappers": [wrapper]}})) == pytest.approx(rate)


def test_an_option_that_is_none_counts_as_unknown() -> None:
    run = clean(steps=1, config={"optim": {"max_grad_norm": None}})
    assert run.option("optim.max_grad_norm", 1.0) == 1.0
    assert not run.has("option:optim.max_grad_norm")


@pytest.mark.parametrize("name", ["gradient_zero", "all_wrong", "entropy_collapsed", "clip_always", "cut_by_tokens"])
def test_a_fault_of_every_step_is_named_within_three_steps_of_its_first(name) -> None:
    run = CASES[name][0]()
    named = next(step for step in range(1, 41) if check(name, run.until(step)) is not None)
    assert named <= SINCE + 4


def first_named(name: str, run: RunRecord) -> int:
    """The first step at which a check names its fault, or 0."""
    return next((step.number for step in run.steps if check(name, run.until(step.number)) is not None), 0)


@pytest.mark.parametrize(("warmup", "named"), [(39, False), (40, True), (10**6, True)])
def test_a_warm_up_excuses_small_changes_only_if_the_run_completes_it(warmup: int, named: bool) -> None:
    run = clean(weights__change=lambda step: 1e-9 * step, since=1, config={"optim": {"warmup_steps": warmup}})
    assert (check("learning_rate_low", run) is not None) is named


@pytest.mark.parametrize(("kept", "named"), [(True, True), (False, False)])
def test_different_rewards_without_an_advantage_leave_a_gradient_of_zero_that_is_named(kept: bool, named: bool) -> None:
    run = clean(grad_norm=0.0, tokens__trained=0.0, episode=change(advantage=0.0, kept=kept))
    assert (check("gradient_zero", run) is not None) is named


@pytest.mark.parametrize(("groups", "step"), [(6, 7), (15, 4), (40, 3)])
def test_small_groups_are_named_the_earlier_the_more_there_are_in_a_step(groups: int, step: int) -> None:
    assert first_named("group_small", clean(steps=8, groups=groups, size=2)) == step


@pytest.mark.parametrize(("share", "named"), [(0.35, True), (0.1, False)])
def test_episodes_that_loop_are_named_by_their_share_although_the_mean_is_low(share: float, named: bool) -> None:
    looping = clean(
        groups=16, episode=lambda one, draw: replace(one, repetition=0.9 if draw.random() < share else 0.05)
    )
    assert (check("repetition", looping) is not None) is named


@pytest.mark.parametrize(("calls", "named"), [(0.4, True), (0.6, False)])
def test_a_tool_that_was_called_often_is_unused_at_a_share_of_the_calls(calls: float, named: bool) -> None:
    run = clean(rollout__tool_calls=lambda step: 10.0 if step < SINCE else calls, since=1)
    assert (check("tool_unused", run) is not None) is named


def test_throughput_that_falls_early_is_named() -> None:
    assert 0 < first_named("throughput_falls", clean(seconds__rollout=9.0, since=7)) <= 7 + 2 * 4


@pytest.mark.parametrize(
    ("growth", "noise", "named"), [(0.03, 0.0, True), (0.03, 0.05, True), (0.1, 0.1, True), (0.0, 0.1, False)]
)
def test_memory_that_grows_is_named_although_it_varies(growth: float, noise: float, named: bool) -> None:
    run = clean(memory__process_gib=lambda step: 2.0 + growth * step + noise * (step * 7 % 5 - 2) / 2, since=1)
    assert (check("memory_grows", run) is not None) is named


def test_memory_that_grows_fast_is_named_after_fewer_steps() -> None:
    slow, fast = (clean(memory__process_gib=lambda step, by=by: 2.0 + by * step, since=1) for by in (0.02, 0.1))
    assert first_named("memory_grows", fast) == 13 < first_named("memory_grows", slow)


@pytest.mark.parametrize(("problems", "step"), [(1, SINCE + 2), (5, SINCE + 2), (12, SINCE + 6), (30, 0)])
def test_a_sampler_is_stuck_after_as_many_groups_as_tell(problems: int, step: int) -> None:
    run = clean(episode=lambda one, draw: replace(one, problem=f"p{(one.step * 8 + one.group) % problems}"), steps=24)
    assert first_named("sampler_stuck", run) == step


@pytest.mark.parametrize("text", ["ha" * 400, "abc" * 300, "0" * 500])
def test_a_loop_without_white_space_is_a_repetition(text: str) -> None:
    episode = Episode(messages=[Message("assistant", text)])
    assert facts_of(EpisodeEntry(episode, 1), "train-1-0").repetition > 0.5


@pytest.mark.parametrize(
    ("calling", "recorded", "named"), [(0.02, True, False), (0.3, True, True), (0.02, False, False)]
)
def test_errors_of_calls_are_judged_if_enough_episodes_call_the_tool(calling, recorded, named) -> None:
    def few(one, draw):
        return replace(one, statuses=(ToolStatus.EXCEPTION,) if draw.random() < calling else ())

    run = clean(steps=20, since=1, episode=few, rollout__tool_error_share=1.0, rollout__tool_calls=calling)
    if not recorded:
        for step in run.steps:
            step.episodes = []
    assert (check("tool_fails", run) is not None) is named


def test_the_share_of_groups_with_a_signal_in_the_text_satisfies_the_rule_however_the_run_began() -> None:
    found = check("few_signals", clean(groups__signal=1, groups__none_correct=1, groups__all_correct=6))
    assert found.figures["share with a signal"] < 0.3
    assert found.says.startswith("12 % of the groups of 10 steps have a signal")


@pytest.mark.parametrize(
    ("since", "text"), [(1, "is below 0.0001 nats a token, as at the start;"), (SINCE, "in the first steps;")]
)
def test_an_entropy_that_was_always_low_is_not_said_to_have_fallen(since, text) -> None:
    assert text in check("entropy_collapsed", clean(policy__entropy=2.96e-44, since=since)).says
