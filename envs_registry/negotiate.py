"""``rstar2/Negotiate-v0``: share a pool of items with a scripted opponent (after GAMEBoT, arXiv 2412.13602)."""

from __future__ import annotations

from dataclasses import dataclass

from rstar2_env.env.game_env import Game, knob, register
from rstar2_env.worlds.negotiation import Negotiation, negotiation

_RULES = """\
A negotiation. You and an opponent share a pool of books, hats and balls. Each of you values the items in one's own \
way, and the whole pool is worth 30 to each. In every round you propose what you take, and the opponent gets the rest; \
it accepts, or refuses and makes an offer of its own, which you may accept in the next round. The longer it lasts, the \
less the opponent insists on. Without an agreement after round {rounds} nobody gets anything. Get as much value as \
you can.
In every turn, before your move, give the value of the deal that your move would make, each on a line of its own:
[Intermediate Thinking Results 1: its value to you]
{second}Then give your move: three numbers, how many books, hats and balls you take, such as 1, 0, 2; or the word \
accept, to take the opponent's last offer."""

_SECOND = "[Intermediate Thinking Results 2: its value to the opponent]\n"


@dataclass(frozen=True)
class Negotiate(Game):
    r"""Share a pool of books, hats and balls with an opponent who concedes a little in every round.

    ## Game
    A move is the number of items of each kind that the policy takes (``1, 0, 2``), or ``accept``. The intermediate
    questions (after GAMEBoT, arXiv 2412.13602) ask for the value, to the policy and to the opponent, of the deal that
    the move proposes or accepts. The outcome is the value of the agreed deal to the policy, divided by the largest
    value that the policy could have obtained from this opponent; it is 0 without an agreement after the last round. An
    outcome of at least 0.8 counts as won.

    ## Difficulty
    ``rounds=5`` (1 to 50); ``reveal=True``: whether the policy knows the opponent's values; with ``reveal=False``, the
    policy is not asked for the value of a deal to the opponent. A player who knows what the opponent will accept earns
    1.0.

    ## Random baseline
    0.31: the player makes random legal proposals and gives no intermediate answers; 0.09 of its episodes are
    ``correct``. Measured over 300 matches.
    """

    name = "negotiate"
    random_baseline = 0.31
    rounds: int = knob(5, 1, 50)
    reveal: bool = knob(True)

    @property
    def rules(self) -> str:
        """The rules, as the policy sees them in the prompt."""
        return _RULES.format(rounds=self.rounds, second=_SECOND if self.reveal else "")

    @property
    def turns(self) -> int:
        """Maximum number of turns: one for each round, and five more that invalid moves may use."""
        return self.rounds + 5

    def start(self, seed: int) -> Negotiation:
        """Return the negotiation that a seed generates: 8 to 12 items, worth 30 in total to each player."""
        return negotiation(seed, self.rounds, self.reveal)


register("rstar2/Negotiate-v0", Negotiate)
