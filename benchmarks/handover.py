"""What a hand-over of weights costs: bytes, seconds and extra memory of the trainer, by transport.

A random Qwen3 of about 1.5 billion parameters (``--hidden``, ``--layers``), in bfloat16, without an optimizer, is
walked layer by layer and given to a receiver that throws it away: ``folder`` writes it to a folder (``--folder``; a
tmpfs counts as memory of the machine, not of the trainer), ``group`` broadcasts it over gloo to a process that receives
every bucket, ``adapter`` writes a LoRA adapter alone, and ``list`` collects all weights, as a hand-over without buckets
does. Each runs in a process of its own. With ``--lora`` the weights of the others are merged with an adapter.

Extra memory is the peak of the resident memory above that before the hand-over. It and the bytes do not depend on the
load of the machine; the seconds do.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import shutil
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

TRANSPORTS = ("folder", "group", "adapter", "list")


def main() -> None:
    """Measure every transport, and print a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hidden", type=int, default=1536)
    parser.add_argument("--layers", type=int, default=28)
    parser.add_argument("--vocabulary", type=int, default=151_936)
    parser.add_argument("--bucket-mib", type=int, default=256)
    parser.add_argument("--lora", type=int, default=0, help="rank of an adapter; the transport adapter takes 16")
    parser.add_argument("--transports", default=",".join(TRANSPORTS))
    parser.add_argument("--folder", type=Path, help="where weights are written; a temporary folder by default")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    names = chosen.transports.split(",")
    if unknown := sorted(set(names) - set(TRANSPORTS)):
        parser.error(f"unknown transports: {', '.join(unknown)}; there are {', '.join(TRANSPORTS)}")
    spawn = multiprocessing.get_context("spawn")
    rows = []
    for name in names:
        here, there = spawn.Pipe()
        process = spawn.Process(target=measure, args=(name, vars(chosen), there))
        process.start()
        there.close()
        try:
            rows.append(here.recv())
        except EOFError:
            sys.exit(f"The measurement of {name} ended without a result.")
        process.join()
    if chosen.json:
        print(json.dumps(rows))
        return
    print(f"{rows[0]['parameters'] / 1e9:.2f} billion parameters, buckets of {chosen.bucket_mib} MiB")
    print(f"{'transport':<10}{'MiB sent':>10}{'seconds':>9}{'extra MiB':>11}{'largest module MiB':>20}")
    for row in rows:
        print(
            f"{row['transport']:<10}{row['bytes'] / 2**20:>10.0f}{row['seconds']:>9.1f}"
            f"{row['extra_bytes'] / 2**20:>11.0f}{row['largest_module_bytes'] / 2**20:>20.0f}"
        )


def measure(name: str, chosen: dict[str, Any], answer: Any) -> None:
    """Hand over once, in this process, and send what it cost."""
    import torch

    torch.set_num_threads(1)
    rank = chosen["lora"] or (16 if name == "adapter" else 0)
    policy = make_policy(chosen, rank)
    before = resident()
    peak = Peak()
    folder = Path(tempfile.mkdtemp(dir=chosen["folder"]))
    began = time.perf_counter()
    try:
        with peak:
            sent = hand_over(name, policy, folder, chosen["bucket_mib"] << 20)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    modules = [sum(one.nbytes for one in part.parameters()) for part in largest_candidates(policy)]
    answer.send(
        {
            "transport": name,
            "parameters": sum(one.numel() for one in policy.parameters()),
            "bytes": sent,
            "seconds": time.perf_counter() - began,
            "extra_bytes": peak.bytes - before,
            "bucket_bytes": chosen["bucket_mib"] << 20,
            "largest_module_bytes": max(modules),
        }
    )


def make_policy(chosen: dict[str, Any], rank: int) -> Any:
    """The model, with an adapter if its rank is not 0."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import Qwen3Config, Qwen3ForCausalLM

    hidden = chosen["hidden"]
    config = Qwen3Config(
        hidden_size=hidden,
        intermediate_size=6 * hidden,
        num_hidden_layers=chosen["layers"],
        num_attention_heads=hidden // 128,
        num_key_value_heads=2,
        head_dim=128,
        vocab_size=chosen["vocabulary"],
        tie_word_embeddings=True,
    )
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("meta"):
        model: Any = Qwen3ForCausalLM(config)
    model = model.to_empty(device="cpu")
    model.tie_weights()
    torch.set_default_dtype(torch.float32)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            # The pages have to be there; the values do not matter.
            parameter.view(-1)[::256].normal_(generator=generator)
    return get_peft_model(model, LoraConfig(r=rank, target_modules="all-linear")) if rank else model


def hand_over(name: str, policy: Any, folder: Path, bucket_bytes: int) -> int:
    """Walk the weights to the receiver; returns the bytes of their tensors."""
    import torch
    from safetensors.torch import save_file

    from rstar2_env.rollout.engines.transports.buckets import writing
    from rstar2_env.trainers.backends.trl.weights.whole_weights import whole_adapter, whole_weights

    seen = 0

    def counted(pairs: Any) -> Iterator[Any]:
        nonlocal seen
        for key, tensor in pairs:
            seen += tensor.nbytes
            yield key, tensor

    if name == "adapter":
        kept = {key: one.clone() for key, one in counted(whole_adapter(policy, dtype=torch.bfloat16).tensors)}
        save_file(kept, str(folder / "adapter_model.safetensors"))
        return seen
    pairs = counted(whole_weights(policy, dtype=torch.bfloat16))
    if name == "list":
        held = [(key, tensor.clone()) for key, tensor in pairs]
        del held
    elif name == "folder":
        for _ in writing(pairs, folder, bucket_bytes=bucket_bytes):
            pass
    else:
        broadcast(pairs, bucket_bytes)
    return seen


def broadcast(pairs: Any, bucket_bytes: int) -> None:
    """Send buckets to another process, as ``GroupTransport`` does."""
    from rstar2_env.rollout.engines.transports.buckets import buckets
    from rstar2_env.rollout.engines.transports.gloo import GlooGroup

    spawn = multiprocessing.get_context("spawn")
    sizes: Any = spawn.Queue()
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    receiver = spawn.Process(target=receive, args=(port, sizes))
    receiver.start()
    group = GlooGroup("127.0.0.1", port, 0, 2, timeout_s=300, listener=listener)
    for bucket in buckets(pairs, bucket_bytes):
        sizes.put(len(bucket.data))
        group.broadcast(bucket.data, Future())
    sizes.put(0)
    receiver.join()


def receive(port: int, sizes: Any) -> None:
    """The other end: receives every bucket and drops it."""
    from rstar2_env.rollout.engines.transports.gloo import GlooGroup, empty

    group = GlooGroup("127.0.0.1", port, 1, 2, timeout_s=300)
    while size := sizes.get():
        group.broadcast(empty(size))


def largest_candidates(policy: Any) -> list[Any]:
    """The modules of which one is whole at a time: the layers, the embeddings, the head."""
    base = policy.get_base_model() if hasattr(policy, "get_base_model") else policy
    return [*base.model.layers, base.model.embed_tokens, base.lm_head]


def resident() -> int:
    """Resident memory of this process, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


class Peak:
    """The largest resident memory while it is entered, in bytes, looked at every few milliseconds."""

    def __init__(self) -> None:
        self.bytes = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.002):
            self.bytes = max(self.bytes, resident())


if __name__ == "__main__":
    main()
