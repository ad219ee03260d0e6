"""A sentence classifier: the model of the text examples, and what `minitorch interpret` can load.

Words are embedded, a recurrent layer reads them, and its last state is turned into logits: what the
contextual decomposition paper explains (Murdoch, Liu, Yu, ICLR 2018).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minitorch import nn
from minitorch.autograd import wrap
from minitorch.nn.utils.rnn import pack_padded_sequence
from minitorch.ops._typing import Tensor

__all__ = ["SentenceClassifier", "padded"]


class SentenceClassifier(nn.Module):
    """Embedding, dropout, LSTM, logits from its last state.

    Parameters
    ----------
    words : int
        Size of the vocabulary.
    classes : int
    embedding, hidden : int
        Numbers per word, and units of the LSTM.
    dropout : float
        Of the embedded words and of the last state, in training.

    Examples
    --------
    >>> import minitorch
    >>> model = SentenceClassifier(words=10, classes=2)
    >>> model(minitorch.tensor([[1], [5], [3]])).shape
    torch.Size([1, 2])
    """

    def __init__(
        self,
        words: int,
        classes: int = 2,
        embedding: int = 64,
        hidden: int = 64,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.options = {
            "words": words,
            "classes": classes,
            "embedding": embedding,
            "hidden": hidden,
            "dropout": dropout,
        }
        self.embed = nn.Embedding(words, embedding)
        self.dropout = nn.Dropout(dropout)
        self.lstm = nn.LSTM(embedding, hidden)
        self.scores = nn.Linear(hidden, classes)

    def forward(self, words: Tensor, lengths: Tensor | None = None) -> Any:
        """Return logits ``(B, classes)`` of texts ``(T, B)``, padded at the end.

        `lengths`, int64 ``(B,)``, says where each text ends; without it all have T words.
        """
        vectors = self.dropout(self.embed(words))
        if lengths is not None:
            vectors = pack_padded_sequence(vectors, lengths, enforce_sorted=False)
        _, (last, _) = self.lstm(vectors)
        return self.scores(self.dropout(last[-1]))


def padded(texts: list[list[int]]) -> tuple[Tensor, Tensor]:
    """Return texts as a block ``(T, B)`` and their lengths ``(B,)``, both int64.

    An empty text becomes one unknown word, number 0, which is what fills the ends as well.
    """
    lengths = np.array([max(len(text), 1) for text in texts], dtype=np.int64)
    block = np.zeros((len(texts), int(lengths.max(initial=1))), dtype=np.int64)
    inside = np.arange(block.shape[1]) < np.array([len(text) for text in texts])[:, None]
    block[inside] = [word for text in texts for word in text]
    return wrap(np.ascontiguousarray(block.T)), wrap(lengths)
