"""The head on a CPU: its outputs and gradients are those of full logits, however the tokens are divided."""

import pytest
import torch

from rstar2_env.trainers.backends.trl.loss import cpu_head
from rstar2_env.trainers.backends.trl.loss.cpu_head import CpuLogProbs

COUNT, WIDTH, WORDS = 13, 8, 50
OUTPUTS = ("log_probs", "entropy", "log_sum_sq_probs", "mean_logits", "is_top1")
NAMES = ("hidden", "weight", "bias")


@pytest.fixture(params=["one tile", "tiles", "tiles, computed again"])
def division(request, monkeypatch):
    if request.param != "one tile":
        monkeypatch.setattr(cpu_head, "CPU_TILE_BYTES", 4 * WORDS * 3)
    if request.param == "tiles, computed again":
        monkeypatch.setattr(cpu_head, "CPU_KEPT_BYTES", 0)


def given(**options):
    torch.manual_seed(0)
    hidden, weight, bias = torch.randn(COUNT, WIDTH), torch.randn(WORDS, WIDTH), torch.randn(WORDS)
    shape = {"temperature": 0.7, "softcap": None, "scale": 1.0, **options}
    targets = torch.randint(WORDS, (COUNT,))
    targets[3] = (hidden[3] @ weight.t() + bias).argmax()
    return [one.requires_grad_() for one in (hidden, weight, bias)], targets, shape


def by_full_logits(tensors, targets, shape):
    hidden, weight, bias = tensors
    logits = (hidden @ weight.t() + bias) * shape["scale"]
    if shape["softcap"]:
        logits = shape["softcap"] * torch.tanh(logits / shape["softcap"])
    logp = (logits / shape["temperature"]).log_softmax(-1)
    p = logp.exp()
    return (
        logp.gather(1, targets[:, None])[:, 0],
        -(p * logp).sum(-1),
        p.square().sum(-1).log().detach(),
        logp.mean(-1).detach(),
        logits.argmax(-1) == targets,
    )


def by_tiles(tensors, targets, shape, outputs=OUTPUTS):
    return CpuLogProbs.apply(
        *tensors[:2], tensors[2], targets, shape["temperature"], 7, shape["softcap"], shape["scale"], outputs
    )


def gradients(tensors, loss):
    return dict(zip(NAMES, torch.autograd.grad(loss, tensors), strict=True))


@pytest.mark.parametrize("options", [{}, {"softcap": 3.0}, {"scale": 0.25, "softcap": 2.0}, {"temperature": 1.0}])
@pytest.mark.parametrize("of_entropy", [0.0, 0.3])
def test_outputs_and_gradients_are_those_of_full_logits(division, options, of_entropy):
    tensors, targets, shape = given(**options)
    factors = torch.randn(COUNT)
    found, wanted = by_tiles(tensors, targets, shape), by_full_logits(tensors, targets, shape)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)
    assert found[4].any()
    assert not found[4].all()
    losses = [(logp * factors).sum() + of_entropy * (entropy * factors).sum() for logp, entropy, *_ in (found, wanted)]
    if not of_entropy:
        losses[0] = (found[0] * factors).sum()
    ours, full = (gradients(tensors, loss) for loss in losses)
    for name in NAMES:
        torch.testing.assert_close(
            ours[name], full[name], rtol=1e-5, atol=1e-5, msg=lambda text, name=name: name + text
        )


def test_the_entropy_alone_has_its_gradients(division):
    tensors, targets, shape = given()
    ours = gradients(tensors, by_tiles(tensors, targets, shape)[1].sum())
    full = gradients(tensors, by_full_logits(tensors, targets, shape)[1].sum())
    for name in NAMES:
        torch.testing.assert_close(ours[name], full[name], rtol=1e-5, atol=1e-5)


def test_a_frozen_head_has_no_gradient_and_passes_one_to_the_hidden_states():
    tensors, targets, shape = given()
    hidden, frozen = tensors[0], [one.detach() for one in tensors[1:]]
    (found,) = torch.autograd.grad(by_tiles([hidden, *frozen], targets, shape)[0].sum(), [hidden])
    (wanted,) = torch.autograd.grad(by_full_logits([hidden, *frozen], targets, shape)[0].sum(), [hidden])
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)


def test_no_token_gives_zero_gradients():
    tensors, _, shape = given()
    logp, entropy, *_ = by_tiles([tensors[0][:0], *tensors[1:]], torch.zeros(0, dtype=torch.long), shape)
    assert (logp.shape, entropy.shape) == ((0,), (0,))
    assert not any(grad.any() for grad in torch.autograd.grad(logp.sum(), tensors[1:]))


def test_autocast_rounds_the_factors_of_products_and_nothing_else(division):
    tensors, targets, shape = given(temperature=1.0)
    with torch.autocast("cpu", torch.bfloat16):
        found = by_tiles(tensors, targets, shape)
    assert found[0].dtype is torch.float32
    wanted = by_full_logits(tensors, targets, shape)
    torch.testing.assert_close(found[0], wanted[0], rtol=0.02, atol=0.05)
    ours, full = gradients(tensors, found[0].sum()), gradients(tensors, wanted[0].sum())
    for name in NAMES:
        assert ours[name].dtype is torch.float32
        torch.testing.assert_close(ours[name], full[name], rtol=0.05, atol=0.05)


def test_a_forward_pass_holds_no_more_than_three_tiles(monkeypatch):
    """Whatever the number of tokens; the largest tensors are counted as they are made."""
    monkeypatch.setattr(cpu_head, "CPU_TILE_BYTES", 4 * WORDS * 3)
    tensors, targets, shape = given()
    made = []

    class Sizes(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            found = func(*args, **(kwargs or {}))
            if isinstance(found, torch.Tensor):
                made.append(found.numel())
            return found

    with Sizes(), torch.no_grad():
        by_tiles([one.detach() for one in tensors], targets, shape)
    assert max(made) <= max(3 * WORDS, WORDS * WIDTH)
