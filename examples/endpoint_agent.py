"""An agent against an endpoint: any OpenAI-compatible server plays, with the environment's tools as its own.

Run: python examples/endpoint_agent.py http://127.0.0.1:8000/v1 MODEL
(vllm serve, llama.cpp, a hosted model; the key is read from OPENAI_API_KEY)
"""

import sys

from rstar2_env import evaluate

base_url, model = sys.argv[1:3]
result = evaluate(
    "rstar2/MathTool-v0",
    "openai",
    problems="arithmetic:level=2",
    episodes=10,
    workers=4,
    agent_options={
        "base_url": base_url,
        "model": model,
        "tools": "native",
        "max_tokens": 1024,
        "limits": {"max_tokens": 200_000},  # of all requests together
    },
)
print(result)
for episode in result.kept:
    print(episode.problem_id, episode.end, episode.reward, [str(status) for status in episode.statuses])
