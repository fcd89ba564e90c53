"""``drive``: GRPO on all problems, and then on a shrinking set of the hardest problems (DRIVE, arXiv 2511.06307).

The first stage plays every problem once; the second stage narrows the set. The paper uses groups of 8 in the first
stage and of 64 in the second, which are two runs here. For the second run, ``--set sampler=hard_focus:rates=FOLDER
--group-size 64`` starts with the pass rates of an evaluation. Clipping is as in ``grpo_clip_higher``.
"""

from ..base import TRAINERS, Recipe

DRIVE = Recipe(
    name="drive",
    summary="DRIVE: GRPO on all problems, then on a shrinking set of the hardest",
    paper="arXiv 2511.06307",
    source="the abstract of arXiv 2511.06307; model card of tencent/DRIVE-RL; neither states the clip, and "
    "no released code was found on 2026-11-30",
    checked="2026-11-24",
    selector="all:reject_equal=true",
    sampler="hard_focus",
)

TRAINERS.register("drive", DRIVE)
