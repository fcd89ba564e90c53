"""Options in files: every format says the same, a recipe may be a file, and a run's own record is one."""

import builtins
import json

import pytest

from rstar2_env import trainers
from rstar2_env.core.errors import ConfigurationError, MissingExtraError, Rstar2Error, UnknownNameError
from rstar2_env.core.options.text import Written
from rstar2_env.trainers.api import find_recipe, layers_of
from rstar2_env.trainers.options.files import read_file

FORMATS = {
    "toml": """
trainer = "grpo_roc"
steps = 7
[optim]
learning_rate = 1e-6
[env]
max_turns = 3
[parts]
selector = "roc:mode=rank"
loss = ["ppo_clip:low=0.1", {name = "kl", coef = 1e-3}]
""",
    "yaml": """
trainer: grpo_roc
steps: 7
optim:
  learning_rate: 1e-6
env: {max_turns: 3}
parts:
  selector: roc:mode=rank
  loss:
    - ppo_clip:low=0.1
    - {name: kl, coef: 1e-3}
""",
    "json": json.dumps(
        {
            "trainer": "grpo_roc",
            "steps": 7,
            "optim": {"learning_rate": 1e-6},
            "env": {"max_turns": 3},
            "parts": {"selector": "roc:mode=rank", "loss": ["ppo_clip:low=0.1", {"name": "kl", "coef": 1e-3}]},
        }
    ),
}


def written(folder, name, text):
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize("suffix", FORMATS)
def test_every_format_says_the_same(suffix, tmp_path):
    recipe, options = trainers.find_recipe(str(written(tmp_path, f"recipe.{suffix}", FORMATS[suffix])))
    config = recipe.configure(options, {"model": "m"})
    assert (recipe.name, config.run.steps, config.optim.learning_rate) == ("grpo_roc", 7, 1e-6)
    assert config.rollout.env_options == {"max_turns": 3}
    assert config.parts.selector.options["mode"] == "rank"
    assert [(term.name, term.options.get("low")) for term in config.parts.loss] == [("ppo_clip", 0.1), ("kl", None)]
    assert config.rollout.oversample == 2, "what the recipe prescribes"


def test_yaml_reads_a_number_without_a_point_as_a_number(tmp_path):
    path = written(tmp_path, "x.yaml", "a: 1e-6\nb: -2E+3\nc: 5e3\nd: e5\ne: 12e\n")
    assert trainers.read_config(path) == {"a": 1e-6, "b": -2000.0, "c": 5000.0, "d": "e5", "e": "12e"}


def test_yaml_without_its_package_says_what_to_install(tmp_path, monkeypatch):
    real = builtins.__import__

    def without_yaml(name, *rest, **named):
        if name == "yaml":
            raise ModuleNotFoundError("No module named 'yaml'", name="yaml")
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without_yaml)
    with pytest.raises(MissingExtraError, match=r"rstar2-env\[yaml\]"):
        trainers.read_config(written(tmp_path, "x.yaml", "a: 1"))


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("x.toml", "a = 1\nb = = 2\n", r"x\.toml is not valid TOML: .*line 2"),
        ("x.yaml", "a: 1\nb: [2\n", r"x\.yaml is not valid YAML: .*line"),
        ("x.yaml", "!!python/object:os.system {}\n", "not valid YAML"),
        ("x.json", "{", r"not valid JSON: .*line 1"),
        ("x.yaml", "- 1\n", "must contain one mapping"),
        ("x.txt", "a = 1", "ends in one of"),
        ("x.toml", 'trainer = "a"\nrecipe = "b"', "twice, as trainer and as recipe"),
        ("x.toml", "trainer = 3", "trainer must be a string, not 3"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(name, text, said, tmp_path):
    with pytest.raises(ConfigurationError, match=said):
        read_file(written(tmp_path, name, text))


def test_an_empty_file_says_nothing(tmp_path):
    for name in ("x.toml", "x.yaml"):
        assert trainers.read_config(written(tmp_path, name, "")) == {}


def test_a_file_may_be_a_recipe_of_its_own(tmp_path):
    text = 'summary = "mine"\npaper = "arXiv 1234.56789"\n[parts]\nadvantage = "rloo"\nloss = ["reinforce"]\n'
    recipe, options = trainers.find_recipe(str(written(tmp_path, "mine.toml", text)))
    config = recipe.configure(options, {"model": "m"})
    assert (recipe.name, recipe.summary, recipe.paper) == ("mine", "mine", "arXiv 1234.56789")
    assert (config.parts.advantage.name, [term.name for term in config.parts.loss]) == ("rloo", ["reinforce"])


def test_a_file_that_is_for_no_trainer_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="does not name a trainer"):
        trainers.find_recipe(str(written(tmp_path, "x.toml", "steps = 3")))
    with pytest.raises(UnknownNameError, match="Did you mean 'grpo_roc'"):
        trainers.find_recipe(str(written(tmp_path, "x.toml", 'trainer = "grpo_rok"')))


class TestOfARun:
    @pytest.fixture
    def folder(self, tmp_path):
        """The folder of a run, as its record is written."""
        config = trainers.TRAINERS.get("grpo_roc").configure(
            {"model": "m", "output_dir": "x", "resume": True, "selector": {"mode": "rank"}}
        )
        record = {"trainer": "grpo_roc", **config.record()}
        written(tmp_path, "config.json", json.dumps(record))
        written(tmp_path, "run.json", "{}")
        return tmp_path

    @pytest.mark.parametrize("name", ["", "config.json"])
    def test_what_a_run_wrote_configures_the_same_run_in_another_folder(self, folder, name):
        recipe, options = trainers.find_recipe(str(folder / name))
        record = recipe.configure(options).record()
        kept = json.loads((folder / "config.json").read_text())
        assert recipe.name == kept.pop("trainer")
        changed = {
            name for group, options in kept.items() for name, value in options.items() if record[group][name] != value
        }
        assert changed == {"output_dir", "resume"}

    def test_the_command_line_goes_over_it(self, folder):
        name, layers = layers_of(None, folder)
        recipe, options = trainers.find_recipe(name)
        assert recipe.configure(options, *layers, {"steps": 3}).run.steps == 3

    def test_another_trainer_does_not_take_its_parts_silently(self, folder):
        with pytest.raises(ConfigurationError, match="a run of the trainer 'grpo_roc', with all parts"):
            layers_of("grpo_clip_higher", folder)

    def test_it_is_known_by_its_bare_name_unless_a_trainer_has_it(self, folder, monkeypatch):
        monkeypatch.chdir(folder.parent)
        assert trainers.find_recipe(folder.name)[0].name == "grpo_roc"
        folder.rename(folder.parent / "dapo")
        assert trainers.find_recipe("dapo") == (trainers.TRAINERS.get("dapo"), {})

    def test_a_model_is_no_run(self, tmp_path):
        written(tmp_path, "config.json", '{"architectures": ["Qwen3ForCausalLM"]}')
        with pytest.raises(ConfigurationError, match=r"does not contain run\.json, so it is not"):
            trainers.read_config(tmp_path)
        written(tmp_path, "run.json", "{}")  # a cold start is the folder of a run and of a model
        for path in (tmp_path, tmp_path / "config.json"):
            with pytest.raises(ConfigurationError, match=r"configuration of a model, .*give the folder as the model"):
                trainers.read_config(path)

    def test_a_folder_without_a_run_is_refused(self, tmp_path):
        with pytest.raises(ConfigurationError, match=r"does not contain config\.json"):
            trainers.read_config(tmp_path)


def test_a_recipe_of_ones_own_is_named_as_anything_else(tmp_path):
    path = written(
        tmp_path,
        "own_recipe_1.py",
        "from rstar2_env.trainers import Recipe\n"
        'MINE = Recipe("mine", "A mix", selector="roc", advantage="rloo", loss=["ppo_clip:level=turn", "kl"])\n',
    )
    for name in (f"{path}:MINE", str(path)):
        recipe, options = trainers.find_recipe(name)
        config = recipe.configure(options, {"model": "m"})
        assert (recipe.name, config.parts.advantage.name) == ("mine", "rloo")
    with pytest.raises(ConfigurationError, match="holds no trainer named 'MIN'"):
        trainers.find_recipe(f"{path}:MIN")


@pytest.mark.parametrize(
    ("text", "layer", "names"),
    [
        ("steps = 'x'", {}, "steps"),
        ("[optim]\nlearning_rate = 'fast'\nweight_decay = 0.1", {}, "optim.learning_rate"),
        ("learnin_rate = 1", {}, "learnin_rate"),
        ("[parts]\nselector = 'rco'", {}, "parts.selector"),
        ("[parts.selector]\nname = 'roc'\nmode = 7", {}, "parts.selector.mode"),
        ("[rollout.env_options]\nmax_turns = 'x'", {}, "rollout.env_options.max_turns"),
        ("[rollout]\ntemperature = -1\n[eval]\ntemperature = 0.5", {}, "rollout.temperature"),
        ("[env]\nmax_turns = 'x'", {}, "env.max_turns"),
        ("[parts]\nselector = 'rco'", {"parts": {"selector": {"mode": "rank"}}}, "parts.selector"),
        ("[optim]\nlearning_rate = 1e-5", {"learning_rate": -1}, None),
        ("[eval]\ntemperature = 0.5", {"rollout": {"temperature": -1}}, None),
        ("temperature = 0.5", {"eval": {"temperature": -1}}, None),
        ("learnin_rate = 1", {"env": {"sizes": {3: 4}}}, "learnin_rate"),
        ("[parts]\nselector = 'roc'", {"selector": "roco"}, None),
        ("group_size = 16", {"steps": 0}, None),
        ("steps = 7", {"steps": Written("0", "--set steps")}, None),
    ],
)
def test_an_error_about_an_option_of_a_file_names_the_file(tmp_path, text, layer, names):
    file = tmp_path / "options.toml"
    file.write_text(text)
    with pytest.raises(Rstar2Error) as caught:
        find_recipe("grpo")[0].configure(read_file(file).options, {"model": "m", **layer})
    found = [note for note in caught.value.__notes__ if note.startswith("The file ")]
    assert found == ([] if names is None else [f"The file {file} contains {names}."])
