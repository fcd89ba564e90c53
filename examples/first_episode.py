"""A first episode: ask, let the model's turn call the tool, read the result, answer.

Run: python examples/first_episode.py
"""

import gymnasium as gym

import rstar2_env  # noqa: F401  # registers the environments

env = gym.make("rstar2/MathTool-v0")
question, info = env.reset(seed=7)
print(info["system"].partition("\n")[0])
print(question)

# A turn is text, as a model would write it. The dialect writes calls and answers, if you do not want to.
dialect = env.unwrapped.dialect
call = dialect.format_call("execute_python_code_with_standard_io", {"code": "print(89*2-34)", "input": ""})
shown, reward, terminated, truncated, info = env.step(f"I compute it. {call}")
print(shown)
print("status:", info["tool_calls"][0]["status"])

shown, reward, terminated, truncated, info = env.step(dialect.format_answer("144"))
print("reward:", reward, "end:", info["end"], "correct:", info["correct"])
env.close()
