"""The models that the training runs use; torch is imported when one is built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from convexlaw.errors import ConvexlawError
from convexlaw.simulations.corpus import VOCABULARY

if TYPE_CHECKING:
    import torch

    from convexlaw.simulations._transformer import Transformer

__all__ = ["TransformerConfig", "build", "require_torch"]


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

    def __post_init__(self) -> None:
        if self.init_std is None:
            object.__setattr__(self, "init_std", float(max(self.width, 1)) ** -0.5)
        for name, least in (
            ("width", 1), ("depth", 0), ("heads", 1), ("context", 1), ("expansion", 1), ("vocabulary", 2),
        ):  # fmt: skip
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ConvexlawError(f"{name} = {value!r}: give a whole number, at least {least}")
        if self.width % self.heads:
            raise ConvexlawError(
                f"width = {self.width} is not a multiple of heads = {self.heads}; change one of them"
            )
        if not self.init_std > 0:
            raise ConvexlawError(f"init_std = {self.init_std}: give a positive standard deviation")
        if not 0 <= self.dropout < 1:
            raise ConvexlawError(f"dropout = {self.dropout}: give a probability in [0, 1)")


def require_torch() -> None:
    """Raise an error that says what to install where torch is missing."""
    try:
        import torch  # noqa: F401
    except ImportError:
        raise ConvexlawError(
            'torch is not installed: training needs it; run  pip install "convexlaw[train]"  and try again'
        ) from None


def build(
    config: TransformerConfig, *, seed: int, device: str = "cpu", dtype: torch.dtype | None = None
) -> Transformer:
    """Build a transformer whose weights depend on the sizes and the seed alone.

    Parameters
    ----------
    config : TransformerConfig
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

    from convexlaw.simulations._transformer import Transformer

    with torch.device("meta"):  # no default initialisation, so the global generator is left alone
        model = Transformer(config)
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
