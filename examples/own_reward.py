"""A reward of your own in training: the environment's reward, plus a small bonus for varied words.

Run: python examples/own_reward.py [MODEL]
or:  rstar2 train grpo_clip_higher --model MODEL --set reward=return+./examples/own_reward.py:Varied:weight=0.2
(without MODEL, it creates a tiny untrained model and trains two steps, to check that everything works on a CPU)
"""

import re
import sys
import tempfile

from rstar2_env import read_run, trainers


class Varied:
    """Share of distinct words in the policy's text; no score if the policy wrote nothing."""

    def __call__(self, episode, ctx):
        """A number for a finished episode; `ctx` has its group, for a reward that declares `needs`."""
        own = (message.content for message in episode.messages if message.role == "assistant")
        words = [word for text in own for word in re.findall(r"\w+|\S", text)]
        return len(set(words)) / len(words) if words else None


if __name__ == "__main__":
    folder = tempfile.mkdtemp(prefix="rstar2-reward-")
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
        reward=["return", [Varied, {"weight": 0.2}]],
        steps=2,
        problems_per_step=2,
        group_size=4,
        output_dir=f"{folder}/run",
        **small,
    )
    result = trainer.train()
    trainer.close()
    print("weights:", result.model_dir)
    for entry in read_run(f"{folder}/run").episodes(2):
        print(entry.episode.end, entry.episode.rewards, "trained on" if entry.kept else "dropped")
