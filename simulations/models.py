"""The models that the training runs use; torch is imported when one is built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from convexlaw.errors import ConvexlawError
from convexlaw.simulations.corpus import VOCABULARY

if TYPE_CHECKING:
    import torch

    from convexlaw.simulations._networks import Network

__all__ = ["MlpConfig", "ModelConfig", "TransformerConfig", "build", "require_torch"]


@dataclass(frozen=True)
class TransformerConfig:
    """Sizes of a decoder-only transformer (pre-norm, causal, no biases, learned positions, untied output).

    Attributes
    ----------
    width : int
        Width of the residual stream; a multiple of ``heads``.
    depth : int
        Number of blocks; 0 leaves the embedding, the last norm and the output.
    heads : int
        Attention heads.
    context : int
        Tokens of a training sequence.
    expansion : int
        Hidden width of a block's MLP in multiples of ``width``.
    init_std : float
        Standard deviation of the normal initialisation of every matrix (the s0 of the clocked law);
        ``width ** -0.5`` where it is not given.
    dropout : float
        Drop probability on the two residual branches.
    vocabulary : int
        Number of tokens.
    """

    width: int = 64
    depth: int = 2
    heads: int = 2
    context: int = 32
    expansion: int = 4
    init_std: float = None  # type: ignore[assignment]
    dropout: float = 0.0
    vocabulary: int = VOCABULARY

    kind: ClassVar[str] = "transformer"

    def __post_init__(self) -> None:
        _check(self, width=1, depth=0, heads=1, context=1, expansion=1, vocabulary=2)
        if self.width % self.heads:
            raise ConvexlawError(
                f"width = {self.width} is not a multiple of heads = {self.heads}; change one of them"
            )


@dataclass(frozen=True)
class MlpConfig:
    """Sizes of a language model without attention: each position sees the last ``window`` tokens.

    Attributes
    ----------
    width : int
        Width of an embedding and of the residual stream.
    depth : int
        Number of residual blocks (norm, up, GELU, down).
    window : int
        Tokens that a position sees, itself included.
    context : int
        Tokens of a training sequence.
    expansion, init_std, dropout, vocabulary
        As in :class:`TransformerConfig`.
    """

    width: int = 64
    depth: int = 2
    window: int = 8
    context: int = 32
    expansion: int = 4
    init_std: float = None  # type: ignore[assignment]
    dropout: float = 0.0
    vocabulary: int = VOCABULARY

    kind: ClassVar[str] = "mlp"

    def __post_init__(self) -> None:
        _check(self, width=1, depth=0, window=1, context=1, expansion=1, vocabulary=2)


ModelConfig = TransformerConfig | MlpConfig
"""Configuration of any model that can be trained here."""


def _check(config: ModelConfig, **least: int) -> None:
    for name, smallest in least.items():
        value = getattr(config, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < smallest:
            raise ConvexlawError(f"{name} = {value!r}: give a whole number, at least {smallest}")
    if config.init_std is None:
        object.__setattr__(config, "init_std", float(config.width) ** -0.5)
    if not config.init_std > 0:
        raise ConvexlawError(f"init_std = {config.init_std}: give a positive standard deviation")
    if not 0 <= config.dropout < 1:
        raise ConvexlawError(f"dropout = {config.dropout}: give a probability in [0, 1)")


def require_torch() -> None:
    """Raise an error that says what to install where torch is missing."""
    try:
        import torch  # noqa: F401
    except ImportError:
        raise ConvexlawError(
            'torch is not installed: training needs it; run  pip install "convexlaw[train]"  and try again'
        ) from None


def build(
    config: ModelConfig, *, seed: int, device: str = "cpu", dtype: torch.dtype | None = None
) -> Network:
    """Build a model whose weights depend on the sizes and the seed alone.

    Parameters
    ----------
    config : TransformerConfig or MlpConfig
        Sizes.
    seed : int
        Seed of the initial weights, drawn in float64 on the CPU whatever the device and precision.
    device : str
        Where the model goes, as torch names it.
    dtype : torch.dtype, optional
        Precision; ``torch.float32`` without it.

    Returns
    -------
    torch.nn.Module
        Maps tokens, shape (batch, length <= context), to logits, shape (batch, length, vocabulary).

    Raises
    ------
    ConvexlawError
        Where torch is missing.
    """
    require_torch()
    import torch

    from convexlaw.simulations._networks import Mlp, Transformer

    with torch.device("meta"):  # no default initialisation, so the global generator is left alone
        model: Network = Mlp(config) if isinstance(config, MlpConfig) else Transformer(config)
    model = model.to(dtype=dtype or torch.float32).to_empty(device="cpu")
    generator = torch.Generator().manual_seed(int(seed))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim >= 2:
                draw = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
                parameter.copy_(draw * config.init_std)
            else:
                parameter.fill_(1.0)
    return model.to(device)
