"""A folder of a model without its tokenizer is refused in one line."""

import pytest

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.trainers.backends.trl.model import load_tokenizer
from rstar2_env.trainers.options.config import ModelOptions


def test_a_folder_without_a_tokenizer_is_refused_in_one_line(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "qwen3"}')
    with pytest.raises(ConfigurationError, match="does not contain a tokenizer: expected a folder with") as refused:
        load_tokenizer(str(tmp_path), ModelOptions(path=str(tmp_path)))
    assert "\n" not in str(refused.value)
