"""Small language models in plain torch."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from convexlaw.simulations.models import MlpConfig, TransformerConfig

__all__ = ["Mlp", "Network", "Transformer"]


class _Attention(nn.Module):
    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.qkv = nn.Linear(config.width, 3 * config.width, bias=False)
        self.out = nn.Linear(config.width, config.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        out: Tensor = self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return out


class _Hidden(nn.Module):
    def __init__(self, config: TransformerConfig | MlpConfig) -> None:
        super().__init__()
        self.up = nn.Linear(config.width, config.expansion * config.width, bias=False)
        self.down = nn.Linear(config.expansion * config.width, config.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.down(F.gelu(self.up(x), approximate="tanh"))
        return out


class _Block(nn.Module):
    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(config.width, bias=False)
        self.attention = _Attention(config)
        self.mlp_norm = nn.LayerNorm(config.width, bias=False)
        self.mlp = _Hidden(config)
        self.drop = nn.Dropout(config.dropout)

    def writers(self) -> list[nn.Linear]:
        """Give the maps whose results are added to the residual stream."""
        return [self.attention.out, self.mlp.down]

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.drop(self.attention(self.attention_norm(x)))
        out: Tensor = x + self.drop(self.mlp(self.mlp_norm(x)))
        return out


class Transformer(nn.Module):
    """Pre-norm decoder: tokens (batch, length) to logits (batch, length, vocabulary)."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.token = nn.Embedding(config.vocabulary, config.width)
        self.position = nn.Parameter(torch.empty(config.context, config.width))
        self.blocks = nn.ModuleList(_Block(config) for _ in range(config.depth))
        self.norm = nn.LayerNorm(config.width, bias=False)
        self.head = nn.Linear(config.width, config.vocabulary, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of the next token at every position."""
        x = self.token(tokens) + self.position[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits: Tensor = self.head(self.norm(x))
        return logits


class _HiddenBlock(nn.Module):
    def __init__(self, config: MlpConfig) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(config.width, bias=False)
        self.hidden = _Hidden(config)
        self.drop = nn.Dropout(config.dropout)

    def writers(self) -> list[nn.Linear]:
        """Give the maps whose results are added to the residual stream."""
        return [self.hidden.down]

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = x + self.drop(self.hidden(self.norm(x)))
        return out


class Mlp(nn.Module):
    """Embeddings of the last ``window`` tokens, mixed once, then residual blocks."""

    def __init__(self, config: MlpConfig) -> None:
        super().__init__()
        self.config = config
        self.token = nn.Embedding(config.vocabulary, config.width)
        self.mix = nn.Linear(config.window * config.width, config.width, bias=False)
        self.blocks = nn.ModuleList(_HiddenBlock(config) for _ in range(config.depth))
        self.norm = nn.LayerNorm(config.width, bias=False)
        self.head = nn.Linear(config.width, config.vocabulary, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of the next token at every position; nothing (zeros) lies before the first token."""
        window = self.config.window
        x = F.pad(self.token(tokens), (0, 0, window - 1, 0))
        x = self.mix(x.unfold(1, window, 1).flatten(2))
        for block in self.blocks:
            x = block(x)
        logits: Tensor = self.head(self.norm(x))
        return logits


Network = Transformer | Mlp
