"""The ONNX model gives what the torch network gives, for every message aggregator, depth, repeat and batch size."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from numpy.typing import NDArray

from pasca.onnx_export import onnx_model
from search_space.architecture import MESSAGES, Architecture
from search_space.assembly import Network
from search_space.errors import ModelError
from search_space.hops import required_hops

F, C, H = 5, 3, 8


def network(design: Architecture, num_repeats: int) -> Network:
    """Random weights everywhere, biases and hop weights included."""
    generators = [torch.Generator().manual_seed(seed) for seed in range(num_repeats)]
    made = Network(design, F, C, H, generators)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.uniform_(-1.0, 1.0, generator=generators[0])
    return made.eval()


def by_torch(made: Network, hops: NDArray[np.float32]) -> NDArray[np.float32]:
    with torch.inference_mode():
        scores = made(made.prepare(torch.from_numpy(hops)))
        return torch.softmax(scores, dim=2).mean(dim=0).numpy()


def session(design: Architecture, made: Network) -> onnxruntime.InferenceSession:
    content = onnx_model(design, F, C, {name: value.numpy() for name, value in made.state_dict().items()})
    return onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("num_repeats", [1, 3])
@pytest.mark.parametrize(
    "text",
    [
        *(f"augmented^3/{message}/mlp-3/-" for message in (*MESSAGES, "decay0.1")),
        *(f"ppr0.1^2/adaptive/mlp-{depth}/augmented^2" for depth in (1, 2, 6)),
        *(
            f"augmented^2/mean/mlp-4/-@{extras}"
            for extras in ("norm=layer", "residual=off", "norm=layer,residual=off", "norm=batch")
        ),
        "-/-/mlp-1/-",
        "-/-/mlp-3/ppr0.1^2",
    ],
)
def test_onnx_equals_torch_with_any_number_of_rows(text: str, num_repeats: int) -> None:
    design = Architecture.parse(text)
    made = network(design, num_repeats)
    run = session(design, made)
    hops = np.random.default_rng(0).normal(size=(design.k_pre + 1, 40, F)).astype(np.float32)
    for rows in (slice(0, 1), slice(None), slice(7, 9)):
        np.testing.assert_allclose(
            run.run(None, {"hops": hops[:, rows]})[0], by_torch(made, hops)[rows], atol=1e-5, rtol=0
        )


def test_a_residual_needs_equal_widths() -> None:
    """With F equal to the hidden width the first layer has no residual all the same."""
    design = Architecture.parse("-/-/mlp-3/-")
    made = Network(design, H, C, H, [torch.Generator().manual_seed(0)]).eval()
    weights = {name: value.numpy() for name, value in made.state_dict().items()}
    run = onnxruntime.InferenceSession(onnx_model(design, H, C, weights), providers=["CPUExecutionProvider"])
    hops = np.random.default_rng(0).normal(size=(1, 4, H)).astype(np.float32)
    np.testing.assert_allclose(run.run(None, {"hops": hops})[0], by_torch(made, hops), atol=1e-5, rtol=0)


def test_the_interface_is_the_hop_stack_with_any_number_of_nodes() -> None:
    design = Architecture.parse("augmented^3/none/mlp-2/-")
    run = session(design, network(design, 1))
    (given,), (result,) = run.get_inputs(), run.get_outputs()
    assert (given.name, given.shape, given.type) == ("hops", [4, "n", F], "tensor(float)")
    assert (result.name, result.shape, result.type) == ("probabilities", ["n", C], "tensor(float)")


@pytest.mark.parametrize("message", [*MESSAGES, "decay0.1"])
def test_only_the_hops_that_are_required_are_read(message: str) -> None:
    design = Architecture.parse(f"augmented^3/{message}/mlp-2/-")
    run = session(design, network(design, 1))
    hops = np.random.default_rng(0).normal(size=(4, 6, F)).astype(np.float32)
    before = run.run(None, {"hops": hops})[0]
    for k in range(4):
        changed = hops.copy()
        changed[k] += 1.0
        assert (run.run(None, {"hops": changed})[0] == before).all() == (k not in required_hops(design))


def test_the_file_is_the_same_whenever_it_is_written_and_names_no_source() -> None:
    design = Architecture.parse("augmented^2/adaptive/mlp-3/-")
    weights = {name: value.numpy() for name, value in network(design, 2).state_dict().items()}
    content = onnx_model(design, F, C, weights)
    assert content == onnx_model(design, F, C, weights)
    model = onnx.load_from_string(content)
    assert [(entry.domain, entry.version) for entry in model.opset_import] == [("", 17)]
    assert b".py" not in content


def test_weights_that_one_file_cannot_hold_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    design = Architecture.parse("-/-/mlp-2/-")
    weights = {name: value.numpy() for name, value in network(design, 1).state_dict().items()}
    monkeypatch.setattr("pasca.onnx_export.LARGEST_BYTES", 100)
    with pytest.raises(ModelError, match=r"less than 2 GB of weights, but those of -/-/mlp-2/- take 0.0 GB"):
        onnx_model(design, F, C, weights)
