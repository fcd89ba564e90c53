"""An agent of your own: it reads the question, computes with the tool, and answers with the result.

Run: python examples/own_agent.py
or:  rstar2 eval rstar2/MathTool-v0 --agent ./examples/own_agent.py --problems arithmetic:level=1 --episodes 20
"""

import re

from rstar2_env import evaluate
from rstar2_env.testing import check_agent

CALL = """<tool_call>
{"name": "execute_python_code_with_standard_io", "arguments": {"code": "%s", "input": ""}}
</tool_call>"""


class Summer:
    """Adds up the numbers of the question, which is right where nothing is taken away or multiplied."""

    def reset(self, observation, info, *, seed):
        """Start an episode; forget the one before."""
        self.numbers = re.findall(r"\d+", observation.partition("Problem:")[2])
        self.asked = False

    def act(self, observation, info):
        """The next whole turn, for what is shown and its info."""
        if not self.asked:
            self.asked = True
            return CALL % ("+".join(self.numbers) or "0")
        found = re.findall(r"-?\d+", observation) or ["0"]
        return f"<answer>\\boxed{{{found[-1]}}}</answer>"


if __name__ == "__main__":
    print("keeps the contract:", ", ".join(check_agent(Summer)))
    result = evaluate("rstar2/MathTool-v0", Summer, problems="arithmetic:level=1", episodes=20)
    print(result)
