"""``deepsearch``: finds the episodes of a group by a search in a tree of chunks (DeepSearch, arXiv 2509.25454).

Each problem has 8 episodes of at most 16,384 tokens; ratios are clipped to the range from 0.8 to 1.28, and there is no
KL term. The overlong penalty, which grows over the last quarter of the budget (4,096 tokens in the paper), is added to
the values of all tokens of an episode, as in the released code. The groups of a rollout are divided into eight
optimizer steps. The paper trains on problems that the policy solves in at most one of four episodes: choose them with
an evaluation, or with ``--set sampler=difficulty_pool``. Unlike in the released code, a group with equal outcomes has
no advantage, and the value of an episode's last chunk passes through tanh like the values of all other chunks. The
released code also limits the loss: ``--set loss.ppo_clip.dual=10``.
"""

from ..base import TRAINERS, Recipe

DEEPSEARCH = Recipe(
    name="deepsearch",
    summary="DeepSearch: episodes found by a search in a tree of chunks; the nodes' values are the advantages",
    paper="arXiv 2509.25454",
    source="smiles724/DeepSearch@daf9067, round0.sh, deepsearch/rollout/sglang_mcts_wrapper.py and "
    "deepsearch/reward_manager/advantage_fn.py",
    checked="2026-11-24",
    rollout="deepsearch",
    reward=("return", "overlong:share=0.25"),
    advantage="tree_value:add=overlong",
    loss=("ppo_clip:low=0.2,high=0.28",),
    defaults={
        "rollout": {"group_size": 8, "max_episode_tokens": 16384},
        "optim": {"learning_rate": 1e-6, "minibatches": 8},
    },
)

TRAINERS.register("deepsearch", DEEPSEARCH)
