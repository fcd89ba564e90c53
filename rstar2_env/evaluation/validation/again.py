"""Grades turns in a fresh process, for the checks ``verifier_determinism`` and ``verifier_portability``.

``python -m rstar2_env.evaluation.validation.again`` reads a JSON request from standard input: a pickled function that
makes the environment, and the turns to play. It prints the grades as one line of JSON.
"""

from __future__ import annotations

import json
import pickle
import sys

from rstar2_env.evaluation.validation.bench import replayed


def main() -> None:
    """Read an environment's pickled factory and the turns from stdin, play the turns, and print the grades as JSON."""
    asked = json.loads(sys.stdin.buffer.read())
    sys.path[:] = asked["path"]
    try:
        env = pickle.loads(bytes.fromhex(asked["make"]))()
    except (ImportError, AttributeError) as error:
        print(
            json.dumps(
                {"untried": f"the class of the environment cannot be imported in another process: {str(error)[:200]}"}
            )
        )
        return
    try:
        grades = [replayed(env, seed, actions).graded() for seed, actions in asked["plays"]]
    finally:
        env.close()
    print(json.dumps({"grades": grades}))


if __name__ == "__main__":
    main()
