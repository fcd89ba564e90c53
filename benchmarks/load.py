"""Host memory that each process takes at its peak while a model is loaded and divided by FSDP2.

    python benchmarks/load.py [--processes 2] [--hidden 1024] [--layers 28] [--lora RANK]

A random Qwen3 (0.6 billion parameters by default) is written in bfloat16 to a temporary folder, then loaded in float32
and divided by the processes on a CPU, twice: each loads it whole (``whole``), and the first loads it and sends the
others their units (``first``), as ``rstar2 train`` does. With ``--lora`` the weights stay in bfloat16, as they do below
adapters on an accelerator. Memory does not depend on the load of the machine. Pages of the file that are mapped count
too.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile

WAYS = ("whole", "first")


def main() -> None:
    """Measure both ways, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--hidden", type=int, default=1024)
    parser.add_argument("--layers", type=int, default=28)
    parser.add_argument("--vocabulary", type=int, default=151_936)
    parser.add_argument("--lora", type=int, default=0, help="rank of new adapters; without, all weights train")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        number = write_model(folder, chosen)
        width, precision = (2, "bfloat16") if chosen.lora else (4, "float32")
        print(f"{number / 1e9:.2f} billion parameters, {width * number / 2**30:.2f} GiB in {precision}")
        print(f"{'way':<8}{'process':>8}{'peak GiB':>10}")
        for way in WAYS:
            launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(chosen.processes)]
            done = subprocess.run(
                [sys.executable, *launcher, __file__, way, folder, str(chosen.lora)],
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            for rank, peak in sorted(line.split()[1:] for line in done.stdout.splitlines() if line.startswith("peak")):
                print(f"{way:<8}{rank:>8}{float(peak):>10.2f}")


def write_model(folder: str, chosen: argparse.Namespace) -> int:
    """Write a random model, and return the number of its parameters."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    config = Qwen3Config(
        hidden_size=chosen.hidden,
        intermediate_size=3 * chosen.hidden,
        num_hidden_layers=chosen.layers,
        num_attention_heads=chosen.hidden // 64,
        num_key_value_heads=chosen.hidden // 128,
        head_dim=128,
        vocab_size=chosen.vocabulary,
        tie_word_embeddings=True,
    )
    torch.manual_seed(0)
    model = Qwen3ForCausalLM(config).bfloat16()
    model.save_pretrained(folder)
    return model.num_parameters()


def measure(way: str, folder: str, lora: int) -> None:
    """Load and divide the model in this process, one of several, and print its peak above what its imports take."""
    import torch

    from rstar2_env.trainers.backends.trl.adapters import with_new_adapter
    from rstar2_env.trainers.backends.trl.model import load_model, processes
    from rstar2_env.trainers.backends.trl.sharding.fsdp2 import shard
    from rstar2_env.trainers.options.config import ModelOptions

    state = processes()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    waits = way == "first" and state.process_index > 0
    options, dtype = ModelOptions(folder, lora_rank=lora), torch.bfloat16 if lora else torch.float32
    model: torch.nn.Module = load_model(folder, options, dtype, waits=waits)
    if lora:
        model = with_new_adapter(model, options, 0)
    shard(model, torch.device("cpu"), dtype)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    # In one piece: the processes share one pipe.
    os.write(1, f"peak {state.process_index} {peak / 2**20:.3f}\n".encode())


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] in WAYS:
        measure(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    else:
        main()
