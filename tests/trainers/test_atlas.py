"""The gradient atlas: exact gradients, known estimators through the product, and a page that follows its record."""

from __future__ import annotations

import importlib
import json
import sys
from dataclasses import replace
from math import comb, sqrt

import pytest
from places import BENCHMARKS, DOCS

from rstar2_env.trainers import TRAINERS
from rstar2_env.trainers.options.slots import FIELDS

pytestmark = pytest.mark.train
torch = pytest.importorskip("torch")


@pytest.fixture(scope="module", autouse=True)
def _programs():
    """The programs of benchmarks/ can be imported; it is no package."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        yield
    for name in [name for name in sys.modules if name.startswith("atlas")]:
        del sys.modules[name]


def program(name):
    return importlib.import_module(name)


def objectives(world):
    """Objectives as functions of a policy."""
    made = program("atlas_world")
    reference = made.TabularPolicy(world, 0.3)
    return {
        "return": lambda policy: made.expected_return(policy, world),
        "pass at 4": lambda policy: made.pass_at(4, policy, world),
        "log success": lambda policy: made.log_success(policy, world),
        "return - KL": lambda policy: made.regularised(policy, world, reference, 0.5),
    }


@pytest.mark.parametrize("name", ["base", "dense", "four turns"])
@pytest.mark.parametrize("objective", ["return", "pass at 4", "log success", "return - KL"])
def test_the_exact_gradient_is_that_of_finite_differences(name, objective):
    made = program("atlas_world")
    world = made.WORLDS[name]
    value, policy = objectives(world)[objective], made.TabularPolicy(world)
    exact = made.gradient(value(policy), policy)
    for at in range(exact.numel()):
        with torch.no_grad():
            around = []
            for step in (1e-5, -1e-5):
                moved = made.TabularPolicy(world)
                moved.table.view(-1)[at] += step
                around.append(value(moved).item())
        assert (around[0] - around[1]) / 2e-5 == pytest.approx(exact.view(-1)[at].item(), abs=1e-9)


def test_the_chances_of_all_episodes_of_a_world_add_up_to_1():
    made = program("atlas_world")
    for world in made.WORLDS.values():
        policy = made.TabularPolicy(world)
        assert sum(policy.chance(path).item() for path in world.paths()) == pytest.approx(1, abs=1e-12), world.name
        for path in world.paths():
            episode = path.episode([0.0] * len(path.tokens()[0]), world.bonus)
            assert sum(turn.reward for turn in episode.steps) == pytest.approx(episode.reward)
            spans = [at for turn in episode.steps for at in range(turn.start, turn.stop)]
            assert spans == [at for at, own in enumerate(episode.mask) if own]


def figures(recipe, case="base", **setting):
    """The figures of a recipe in a case whose setting is changed."""
    cases = program("atlas_cases")
    world, plain = cases.CASES[case]
    updates = cases.Updates(recipe, cases.WORLDS[world], cases.replace(plain, **setting))
    return cases.compare(updates, updates.expected())


def rate_of(case):
    """The success rate of a case's world."""
    made = program("atlas_world")
    world = made.WORLDS[program("atlas_cases").CASES[case][0]]
    return made.success(made.TabularPolicy(world), world).item()


def alone(slot, written):
    return program("atlas_update").alone(slot, written)


@pytest.mark.parametrize(
    ("estimator", "aim"),
    [
        ("k2", "- KL of tokens"),
        ("k3", "- reverse KL of tokens"),
        ("unbiased", "- KL of tokens"),
        ("episode", "- KL of episodes"),
        ("k1", None),
    ],
)
def test_each_estimator_of_the_divergence_follows_its_own_gradient(estimator, aim):
    """arXiv 2512.21852: k2 has the gradient of KL(policy, reference), k3 that of the reverse, and k1 has none."""
    cases = program("atlas_cases")
    name = f"kl:estimator={estimator}"
    found = cases.Case("regularizer", name, alone("loss", name), "failing tool").figures()
    if aim is None:
        assert found["length"] < 1e-15
        return
    assert found["cosines"][aim] == pytest.approx(1, abs=1e-9)
    assert found["scales"][aim] == pytest.approx(1e-3, rel=1e-6), "the coefficient of the term"
    assert min(found["cosines"][other] for other in cases.AIMS["regularizer"]) < 1 - 1e-5


@pytest.mark.parametrize(
    ("written", "scale"),
    [("gigpo:baseline=others,gamma=1", 2), ("opo:baseline=others", 1), ("optimal_token_baseline:baseline=others", 1)],
)
def test_a_baseline_of_the_other_episodes_is_unbiased(written, scale):
    for case in ("four turns", "groups of 2"):
        found = figures(alone("advantage", written), case)
        assert found["cosines"]["return"] == pytest.approx(1, abs=1e-9)
        assert found["scales"]["return"] == pytest.approx(scale, abs=1e-9)


@pytest.mark.parametrize("name", ["grpo", "gigpo"])
def test_a_recipe_with_a_divergence_has_a_form_without_bias_for_the_return_and_one_with_the_divergence(name):
    recipe = TRAINERS.get(name)
    forms = dict(program("atlas_cases").repairs(recipe))  # the last one for each objective
    assert list(forms) == ["return", "return - KL"]
    for objective, swaps in forms.items():
        found = figures(replace(recipe, **swaps), "four turns", group_size=2)
        assert found["cosines"][objective] == pytest.approx(1, abs=1e-12)
        assert figures(recipe, "four turns", group_size=2)["cosines"][objective] < 1 - 1e-3


def test_a_repaired_form_must_follow_its_objective_exactly_in_every_case_with_all_groups_listed():
    cases = program("atlas_cases")

    def record(**changed):
        exact = {"cosines": {"return": 1.0}}
        found = dict.fromkeys(cases.OF_FAMILY["repair"], exact) | changed
        return {f"repair/x/{case}": one for case, one in found.items() if one is not None}

    assert cases.follows(record(), "x", "return")
    small, sampled = {"cosines": {"return": 1 - 1e-12}}, {"cosines": {"return": 1.0}, "within": 1e-9}
    for one in (small, sampled):  # a weak term of the loss, and an interval, can both hide a bias
        assert not cases.follows(record(**{"dense reward": one}), "x", "return")
        assert cases.missing_case(record(base=one, **{"groups of 2": None}), "x", "return") == ""
    assert not cases.follows(record(**{"groups of 2": None}), "x", "return")
    assert cases.missing_case(record(**{"groups of 2": None}), "x", "return") == "groups of 2"


def test_the_weak_divergence_of_a_recipe_is_a_bias_of_its_update():
    cases = program("atlas_cases")
    recipe = replace(TRAINERS.get("dump"), aggregation=cases.CONSTANT, advantage="rloo")
    found, without = figures(recipe, group_size=2), figures(replace(recipe, loss=("ppo_clip",)), group_size=2)
    assert cases.is_parallel(without)
    assert not cases.is_parallel(found)
    assert 1 - found["cosines"]["return"] < 1e-6
    record = {"recipe/dump/base": found, "recipe/dump/older weights": without}
    assert cases.is_biased(record, "dump")
    assert not cases.is_biased({"recipe/dump/base": without, "recipe/dump/older weights": found}, "dump")


def test_a_repaired_form_without_selection_plays_no_more_than_it_keeps_so_that_its_groups_are_listed():
    cases, made = program("atlas_cases"), program("atlas_update")
    swaps = [one for objective, one in cases.repairs(TRAINERS.get("grpo_roc")) if "selector" in one]
    assert all(cases.OVERSAMPLE in one for one in swaps)
    world = program("atlas_world").WORLDS["base"]
    for one in swaps:
        assert made.Updates(cases.repaired_recipe(TRAINERS.get("grpo_roc"), one), world, made.Setting(2)).lists
    assert not any(cases.OVERSAMPLE in one for _, one in cases.repairs(TRAINERS.get("grpo")))


@pytest.mark.parametrize("name", ["grpo_clip_higher", "kdrl", "otb"])
def test_the_sum_of_shared_gradients_of_rows_is_the_gradient_of_the_batch(name):
    made, world = program("atlas_update"), program("atlas_world").WORLDS["base"]
    updates = made.Updates(name, world, made.Setting(behind=4))
    for members in ((0, 1, 2, 3), (1, 1, 2, 3), (0, 0, 1, 3)):
        rows = updates._rows(members)
        assert updates._linear
        whole = updates._gradient(rows, updates.parts.aggregation)
        assert float((updates._sum_of_rows(rows) - whole).norm()) < 1e-12
        assert float(whole.norm()) > 1e-3


def test_older_weights_earn_less_with_each_missing_update():
    made = program("atlas_world")
    world = made.WORLDS["base"]
    returns = [made.expected_return(made.older(world, updates), world).item() for updates in (0, 1, 4, 8)]
    assert returns == sorted(returns, reverse=True)
    length = float(made.gradient(made.expected_return(policy := made.older(world, 0), world), policy).norm())
    assert returns[0] - returns[1] == pytest.approx(made.RATE * length**2, rel=0.05)


def test_a_component_that_an_advantage_adds_is_paid():
    made = program("atlas_update")
    assert made.paid(TRAINERS.get("deepsearch"))[0] == "return"
    assert [one.partition(":")[0] for one in made.paid(TRAINERS.get("deepsearch"))] == ["return", "overlong"]
    assert figures(TRAINERS.get("deepsearch"), group_size=2)["length"] > 0


def test_the_listed_episodes_of_a_world_have_one_task():
    """The baseline of ``rae`` and the deviation of ``task_norm`` are those of a task."""
    world = program("atlas_world").WORLDS["base"]
    assert len({path.episode([0.0] * len(path.tokens()[0])).task for path in world.paths()}) == 1
    assert figures(alone("advantage", "task_norm"), group_size=2)["length"] > 0


def test_the_first_token_is_forced_in_a_world_without_calls():
    made = program("atlas_world")
    policy = made.TabularPolicy(made.WORLDS["one turn"])
    assert len(policy.at) == 1
    assert sum(policy.chance(path).item() for path in made.WORLDS["one turn"].paths()) == pytest.approx(1)


def test_leave_one_out_is_the_gradient_of_the_expected_return():
    for case in ("base", "dense reward", "rare success"):
        found = figures(alone("advantage", "rloo"), case)
        assert found["cosines"]["return"] == pytest.approx(1, abs=1e-6)
        assert found["scales"]["return"] == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("size", [2, 3])
def test_the_mean_of_the_group_shrinks_the_gradient_by_the_share_of_the_others(size):
    found = figures(alone("advantage", "group_mean"), "equal lengths", group_size=size)
    assert found["scales"]["return"] == pytest.approx((size - 1) / size, abs=1e-9)


@pytest.mark.parametrize("case", ["equal lengths", "rare success"])
def test_division_by_the_deviation_weighs_a_problem_by_its_rate_of_success(case):
    """Given m right of n, right episodes have the mean score dp/p, wrong ones -dp/(1-p): the weight of dp is known."""
    n, p = 4, rate_of(case)
    weight = sum(
        comb(n, m) * p**m * (1 - p) ** (n - m) * m * (n - m) / n**2 / (sqrt(m * (n - m) / (n * (n - 1))) + 1e-4)
        for m in range(1, n)
    ) / (p * (1 - p))
    found = figures(alone("advantage", "group_norm"), case)
    assert found["cosines"]["return"] == pytest.approx(1, abs=1e-9), "one problem has one direction"
    assert found["scales"]["return"] == pytest.approx(weight, rel=1e-9)


def test_maxrl_is_the_gradient_of_pass_at_1_to_3_each_divided_by_its_number():
    """The truncated maximum likelihood of arXiv 2602.02710: sum of pass@k / k, of order n - 1 with a baseline."""
    for case in ("base", "rare success"):
        p = rate_of(case)
        found = figures(alone("advantage", "maxrl"), case)
        assert found["cosines"]["return"] == pytest.approx(1, abs=1e-9)
        assert found["scales"]["return"] == pytest.approx(sum((1 - p) ** (k - 1) for k in (1, 2, 3)), rel=1e-9)


def test_a_mean_over_each_episode_turns_the_gradient_only_if_lengths_differ():
    found = {case: figures(alone("aggregation", "seq_mean"), case, group_size=2) for case in ("base", "equal lengths")}
    assert found["equal lengths"]["cosines"]["return"] == pytest.approx(1, abs=1e-9)
    assert found["base"]["cosines"]["return"] < 0.999


def test_the_noise_is_the_variance_of_listed_updates():
    """Two episodes and two outcomes: the variance by hand from the updates of the groups."""
    made = program("atlas_update")
    updates = made.Updates(alone("advantage", "rloo"), program("atlas_world").WORLDS["equal lengths"], made.Setting(2))
    groups = [(chance, updates.update(members)) for chance, members in updates.groups()]
    assert sum(chance for chance, _ in groups) == pytest.approx(1)
    mean = sum(chance * update for chance, update in groups)
    spread = sum(chance * float(((update - mean) ** 2).sum()) for chance, update in groups)
    assert updates.expected().variance == pytest.approx(spread, rel=1e-9)


def test_sampled_groups_agree_with_listed_groups_within_their_error():
    made, cases = program("atlas_update"), program("atlas_cases")
    world = program("atlas_world").WORLDS["equal lengths"]
    updates = made.Updates(alone("aggregation", "seq_mean"), world, made.Setting(2, samples=200))
    listed, sampled = updates.expected(), updates._sampled()
    error = sqrt(sampled.variance / 200)
    assert float((listed.update - sampled.update).norm()) < 4 * error
    assert 0 < cases.compare(updates, sampled)["within"] < 0.2


def test_weighted_resampling_has_the_expected_update_of_training_on_all_episodes():
    """One group of eight, of which four are kept in each of many draws; the advantages are those of the eight."""
    made, world = program("atlas_update"), program("atlas_world").WORLDS["failing"]
    members = [*[at for at, path in enumerate(world.paths()) if path.correct][:3], 0, 2, 2, 0, 2]
    assert len({world.paths()[at].correct for at in members}) == 2

    def mean(selector, group_size, draws, oversample):
        recipe = made.alone("selector", selector, defaults={"rollout": {"oversample": oversample}})
        updates = made.Updates(recipe, world, made.Setting(group_size))
        return torch.stack([updates.update(members) for _ in range(draws)]).mean(0)

    whole = mean("all", 8, 1, 1)
    weighted = mean("roc:mode=weighted", 4, 800, 2)
    assert float((weighted - whole).norm() / whole.norm()) < 0.05
    unweighted = mean("roc", 4, 200, 2)
    assert float((unweighted - whole).norm() / whole.norm()) > 0.2


def test_a_stopped_run_continues_where_it_was(tmp_path):
    atlas, cases = program("atlas"), program("atlas_cases")
    given = [cases.Case("advantage", name, alone("advantage", name), "groups of 2") for name in ("rloo", "opo")]
    path = tmp_path / "atlas.jsonl"
    assert atlas.run(path, -1.0, given) == 2
    assert atlas.run(path, 60.0, given[:1]) == 0
    first = path.read_text()
    assert atlas.run(path, 60.0, given) == 0
    assert path.read_text().startswith(first)
    head, *lines = map(json.loads, path.read_text().splitlines())
    assert head.keys() == {"command", "commit", "load"}
    assert all(line["commit"] for line in lines)
    assert list(atlas.read(path)) == [case.key for case in given]


def test_the_page_has_a_row_for_each_recorded_part_and_recipe(tmp_path):
    atlas, cases, page = program("atlas"), program("atlas_cases"), program("atlas_page")
    given = [case for case in cases.part_cases() if case.name in ("rloo", "seq_mean") and case.case == "groups of 2"]
    atlas.run(tmp_path / "atlas.jsonl", 60.0, given)
    record = atlas.read(tmp_path / "atlas.jsonl")
    rows = [line for line in page.lines(record) if line.startswith(("| `rloo`", "| `seq_mean`"))]
    assert len(rows) == 2
    page.draw(record, tmp_path / "atlas.png")
    assert (tmp_path / "atlas.png").read_bytes().startswith(b"\x89PNG")
    assert all(key in line for key, line in zip(record, atlas.table(record), strict=True))


def test_the_record_is_what_the_code_computes():
    cases, record = program("atlas_cases"), program("atlas").read()
    short = [case for case in [*cases.part_cases(), *cases.recipe_cases()] if case.case == "equal lengths"]
    on_axes = [case for case in cases.curve_cases() if case.case in ("one turn", "1 update behind")]
    for case in [*short[::25], *on_axes[::40]]:
        again, recorded = case.figures(), record[case.key]
        assert again["cosines"] == pytest.approx(recorded["cosines"], abs=1e-9), case.key
        for objective in again["cosines"]:  # the tables print "0" for what is parallel
            assert cases.is_parallel(again, objective) == cases.is_parallel(recorded, objective), case.key
        assert again["scales"] == pytest.approx(recorded["scales"], rel=1e-9, abs=1e-12), case.key
        assert again["noise"] == pytest.approx(recorded["noise"], rel=1e-9, abs=1e-9), case.key


def test_rows_that_an_earlier_recipe_left_do_not_change_the_figures_of_a_later_one(monkeypatch):
    """With a bonus for calls, ``dapo`` also rejects groups whose answers are all right or all wrong."""
    made = program("atlas_update")
    monkeypatch.setattr(made, "_ROWS", made._Collected())
    earlier = figures("grpo_clip_higher", "dense reward", group_size=2)
    later = figures("dapo", "dense reward", group_size=2)
    monkeypatch.setattr(made, "_ROWS", made._Collected())
    assert figures("dapo", "dense reward", group_size=2) == later
    assert later["scales"] != earlier["scales"]


def test_recipes_that_pay_other_components_share_neither_rows_nor_a_line():
    one, signature = TRAINERS.get("deepsearch"), program("atlas_cases").signature
    other = replace(one, reward=("outcome",))
    assert program("atlas_update").rows_of(one) != program("atlas_update").rows_of(other)
    assert signature(one) != signature(other)
    assert signature(one) == signature(replace(one, name="other", reward=("outcome", *one.reward)))


def test_every_part_and_every_recipe_is_recorded_and_on_the_page():
    cases, record = program("atlas_cases"), program("atlas").read()
    all_cases = [*cases.part_cases(), *cases.recipe_cases(), *cases.curve_cases()]
    missing = [case.key for case in all_cases if case.key not in record]
    assert missing == [], "run: python benchmarks/atlas.py run, then write"
    page = (DOCS / "atlas.md").read_text("utf-8")
    names = [name for slot in cases.SLOTS for name in FIELDS[slot].names()] + list(TRAINERS.names())
    assert [name for name in names if f"`{name}`" not in page] == []
    assert "none of those tried" not in page


def test_the_page_is_written_from_the_record():
    page = "\n".join(program("atlas_page").lines(program("atlas").read())) + "\n"
    assert (DOCS / "atlas.md").read_text("utf-8") == page, "run: python benchmarks/atlas.py write"


def test_a_verdict_follows_from_the_cosines_and_the_scales():
    page = program("atlas_page")

    def one(angle, scale, **more):
        cosines = dict.fromkeys(("return", "log success", "pass at 4", "return - KL"), angle)
        scales = {"return": scale, "log success": 2.0 * scale, "pass at 4": scale**2, "return - KL": scale}
        return {"cosines": cosines, "scales": scales, "length": 1.0, **more}

    assert page.verdict({"base": one(1.0, 0.5), "rare success": one(1.0, 0.5)}).startswith("unbiased for the gradient")
    assert "scale 0.5 to 0.7" in page.verdict({"base": one(1.0, 0.5), "rare success": one(1.0, 0.7)})
    assert page.verdict({"base": one(0.5, 0.5)}) == "biased: 60.0 degrees in *base*"
    lengths = {"base": one(0.5, 0.5), "equal lengths": one(1.0, 0.5)}
    assert page.verdict(lengths).startswith("biased only if lengths differ")
    assert page.verdict(lengths | {"dense reward": one(0.9, 0.5)}).startswith("biased if lengths differ")
    assert page.verdict({"base": one(1 - 1e-9, 0.5)}) == "biased: <0.1 degrees in *base*"
    assert "by sampling" in page.verdict({"base": one(0.999, 0.5, within=0.01)})
