"""A part of a trainer of your own: an advantage from the rank of an episode in its group, in GRPO's recipe.

Run: python examples/own_trainer_part.py [MODEL]
or:  rstar2 train grpo_clip_higher --model MODEL --set advantage=./examples/own_trainer_part.py:Ranked
(without MODEL, it creates a tiny untrained model and trains two steps, to check that everything works on a CPU)
"""

import sys
import tempfile

import numpy as np

from rstar2_env import read_run, trainers
from rstar2_env.testing import check_advantage


class Ranked:
    """The share of the group that did worse, less the share that did better."""

    def __call__(self, groups, ranks):
        """A number for each episode of each group; `ranks` reduces over processes, which this does not need."""
        return [[self.place(episode, group) for episode in group] for group in groups]

    def place(self, episode, group):
        """From -1 to 1."""
        return float(sum(np.sign(episode.reward - other.reward) for other in group) / len(group))


if __name__ == "__main__":
    print("keeps the contract:", ", ".join(check_advantage(Ranked)))
    folder = tempfile.mkdtemp(prefix="rstar2-part-")
    small = {}
    if len(sys.argv) > 1:
        model = sys.argv[1]
    else:
        from rstar2_env.trainers.demonstration.tiny import make_tiny_model

        model = make_tiny_model(f"{folder}/model", hidden=32, layers=1)
        small = {"max_episode_tokens": 32, "max_turn_tokens": 24}
    trainer = trainers.make(
        "grpo_clip_higher",
        model=model,
        env="rstar2/MathTool-v0",
        env_options={"problems": "arithmetic:level=1", "max_turns": 2},
        advantage=Ranked,
        steps=2,
        problems_per_step=2,
        group_size=4,
        output_dir=f"{folder}/run",
        **small,
    )
    result = trainer.train()
    trainer.close()
    print("weights:", result.model_dir, "steps:", read_run(f"{folder}/run").steps)
