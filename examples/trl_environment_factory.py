"""Train with TRL's own GRPOTrainer in an environment of this package, through its slot `environment_factory`.

Run: python examples/trl_environment_factory.py [MODEL]
(without MODEL, it creates a tiny untrained model and trains one step, to check that everything works on a CPU)

TRL uses its own loop: it runs the calls that it can parse, and does not pass the last turn to the environment; the tool
`hand_in` compensates for that. `rstar2 train` plays the whole contract.
"""

import sys
import tempfile

from datasets import Dataset
from transformers import AutoTokenizer
from trl import GRPOConfig, GRPOTrainer
from trl.chat_template_utils import qwen3_chat_template

from rstar2_env.adapters.trl import environment_factory, hand_in, rows
from rstar2_env.trainers.demonstration.tiny import make_tiny_model

ENV = "rstar2/MathTool-v0"
OPTIONS = {"problems": "arithmetic:level=1", "max_turns": 4}


def statuses(completions, environments, **columns):
    """Return no reward; print the status of every call, which TRL does not count."""
    for environment in environments:
        episode = environment.episode
        print(episode.end or "cut off", list(map(str, episode.statuses)), environment.get_reward())
    return [None] * len(completions)


if __name__ == "__main__":
    folder = tempfile.mkdtemp(prefix="rstar2-trl-")
    tiny = len(sys.argv) == 1
    model = make_tiny_model(f"{folder}/model", hidden=32, layers=1) if tiny else sys.argv[1]
    tokenizer = AutoTokenizer.from_pretrained(model)
    if tiny:  # TRL asks for a template that writes tools; that of the tiny model has none
        tokenizer.chat_template = qwen3_chat_template
    trainer = GRPOTrainer(
        model=str(model),
        reward_funcs=[hand_in, statuses],
        args=GRPOConfig(
            output_dir=folder,
            per_device_train_batch_size=4,
            num_generations=4,
            max_completion_length=24 if tiny else 1024,
            max_steps=1 if tiny else 100,
            use_cpu=tiny,
            report_to=[],
        ),
        train_dataset=Dataset.from_list(rows(ENV, 100, **OPTIONS)),
        processing_class=tokenizer,
        environment_factory=environment_factory(ENV, **OPTIONS),
    )
    trainer.train()
    print("rewards:", [entry["reward"] for entry in trainer.state.log_history if "reward" in entry])
