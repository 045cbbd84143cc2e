"""Builds the training batch from sampled episodes: scaled rewards, curiosity, advantages, value targets.

It replaces RLlib's default connectors by one pass over whole episodes. So one place handles the ends of episodes
(terminated, truncated, cut), and the two reward streams keep their own values. Minibatches are rows chosen by index.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns

from services.trainer.rl.curiosity.novelty_view import NoveltyView
from services.trainer.rl.env_runner import ACTED
from services.trainer.rl.gae import Floats, advantages, option_advantages
from services.trainer.rl.module import CURIOSITY_VALUES, GAME_VALUES
from services.trainer.rl.networks.pixel_observation import as_network_input, inference_chunks
from services.trainer.rl.networks.policy_network import BEGINS, MEMORY, piece_begins, rows_of_pieces
from services.trainer.rl.reward_normalisation import RewardNormalisation
from shared.contracts.learning.ppo import PpoConfig
from shared.game.observation import cells

ADVANTAGES = "advantages"
GAME_TARGETS = "game_targets"
CURIOSITY_TARGETS = "curiosity_targets"
WHITENED = "whitened"

Rows = dict[str, torch.Tensor]


class BatchBuilder:
    """Converts RLlib's episode chunks into tensors. Owns the running statistics of rewards and observations."""

    def __init__(self, hyper: PpoConfig, shape: tuple[int, ...], curiosity: bool, *, options: bool = False) -> None:
        """With `options`, a choice of the policy may last several steps: those that are not marked as acted."""
        self.hyper = hyper
        self.curiosity, self.options = curiosity, options
        # Visits are counted by the network's own table, which needs no view and no whitening.
        self.view = None if hyper.curiosity_view == cells.VERSION else NoveltyView(shape, hyper.curiosity_view)
        whitened = self.view.shape if self.view is not None else ()
        self.streams = RewardNormalisation(whitened, hyper.discount, hyper.curiosity_discount)
        self.figures: dict[str, float] = {}
        self.done = 0.0  # share of the planned steps, for the schedules

    def __call__(self, *, rl_module: Any, episodes: list[Any], **kwargs: Any) -> dict[str, dict[str, torch.Tensor]]:
        """Build the batch of all steps in `episodes`, in their order."""
        chunks = [episode for episode in episodes if len(episode)]
        network = rl_module[DEFAULT_MODULE_ID].unwrapped()
        observations = [as_network_input(chunk.get_observations()) for chunk in chunks]
        values = self._values(network, observations)
        columns = self._game(chunks, values[GAME_VALUES])
        if self.curiosity:
            self._add_curiosity(network, chunks, observations, values[CURIOSITY_VALUES], columns)
        acted = self._acted(chunks)
        spread = columns[ADVANTAGES] if acted is None else columns[ADVANTAGES][acted]
        if len(spread):
            columns[ADVANTAGES] = (columns[ADVANTAGES] - spread.mean()) / max(
                self.hyper.advantage_floor, float(spread.std())
            )
            self.figures["advantage_deviation"] = float(spread.std())
        columns[Columns.OBS] = np.concatenate([stretch[:-1] for stretch in observations])
        columns[Columns.ACTIONS] = joined(chunks, lambda chunk: chunk.get_actions())
        columns[Columns.ACTION_LOGP] = joined(chunks, lambda chunk: chunk.get_extra_model_outputs(Columns.ACTION_LOGP))
        if network.pi.memory_size:
            columns[MEMORY] = joined(chunks, lambda chunk: chunk.get_extra_model_outputs(MEMORY))
            columns[BEGINS] = joined(chunks, lambda chunk: piece_begins(len(chunk)))
        self.figures["steps"] = float(len(columns[Columns.ACTIONS]))
        if acted is not None:
            columns = {name: column[acted] for name, column in columns.items()}
        return {DEFAULT_MODULE_ID: {name: torch.from_numpy(column) for name, column in columns.items()}}

    def _acted(self, chunks: list[Any]) -> NDArray[np.bool_] | None:
        """Which steps the learner learns from: those in which the policy's action was executed. None means all.

        The other steps stay part of the advantages before them, as everything that the environment does; then they are
        left out, so no loss and no gradient comes from them.
        """
        if not any(ACTED in chunk.extra_model_outputs for chunk in chunks):
            return None
        acted: NDArray[np.bool_] = joined(chunks, lambda chunk: chunk.get_extra_model_outputs(ACTED)).astype(np.bool_)
        self.figures["policy_steps_share"] = float(acted.mean())
        return None if acted.all() else acted  # to leave nothing out would copy every column

    def _values(self, network: Any, observations: list[NDArray[Any]]) -> dict[str, list[Floats]]:
        """Both heads' values of every state, including the one after the last step: one array (T + 1,) per chunk."""
        cuts = np.cumsum([len(stretch) for stretch in observations])[:-1]
        with torch.inference_mode():
            parts = [network.values(part) for part in inference_chunks(torch.from_numpy(np.concatenate(observations)))]
        return {name: np.split(torch.cat([part[name] for part in parts]).numpy(), cuts) for name in parts[0]}

    def _game(self, chunks: list[Any], values: list[Floats]) -> dict[str, NDArray[Any]]:
        """Advantages and value targets of the game reward. Only a terminated episode is worth 0 after its end."""
        raw = [(chunk.id_, np.asarray(chunk.get_rewards(), np.float32), chunk.is_done) for chunk in chunks]
        rewards = self.streams.game.scaled(raw)
        found = [
            self._advantages(
                chunk, reward, value, 0.0 if chunk.is_terminated else float(value[-1]), self.hyper.discount
            )
            for chunk, reward, value in zip(chunks, rewards, values, strict=True)
        ]
        targets = [advantage + value[:-1] for advantage, value in zip(found, values, strict=True)]
        self.figures = {"reward_scale": float(self.streams.game.sums.std)}
        acted = self._acted(chunks) if self.options else None  # a step within an option has no target
        predicted = np.concatenate([value[:-1] for value in values])
        learnt = slice(None) if acted is None else acted
        self.figures["explained_variance"] = explained(np.concatenate(targets)[learnt], predicted[learnt])
        return {ADVANTAGES: np.concatenate(found), GAME_TARGETS: np.concatenate(targets)}

    def _advantages(self, chunk: Any, rewards: Floats, values: Floats, last_value: float, discount: float) -> Floats:
        """Advantages of one chunk, (T,), from its rewards (T,) and values (T + 1,)."""
        gae_lambda = self.hyper.gae_lambda
        if not self.options:
            return advantages(rewards, values[:-1], last_value=last_value, discount=discount, gae_lambda=gae_lambda)
        decided = np.asarray(chunk.get_extra_model_outputs(ACTED), np.bool_)
        return option_advantages(
            rewards, values[:-1], decided, last_value=last_value, discount=discount, gae_lambda=gae_lambda
        )

    def _add_curiosity(
        self,
        network: Any,
        chunks: list[Any],
        observations: list[NDArray[Any]],
        values: list[Floats],
        columns: dict[str, NDArray[Any]],
    ) -> None:
        """Add the novelty of reached states to the advantages. It is non-episodic: every end is bootstrapped."""
        if self.view is None:
            novelty = network.visits.bonus(np.concatenate([stretch[1:] for stretch in observations]))
            self.figures["cells"] = float(network.visits.cells)
        else:
            errors = self._prediction_errors(network, [self.view.of(stretch[1:]) for stretch in observations], columns)
            if errors is None:
                return
            novelty = errors
        cuts = np.cumsum([len(chunk) for chunk in chunks])[:-1]
        raw = [(chunk.id_, bonus, chunk.is_done) for chunk, bonus in zip(chunks, np.split(novelty, cuts), strict=True)]
        bonuses = self.streams.curiosity.scaled(raw)
        found = [
            self._advantages(chunk, bonus, value, float(value[-1]), self.hyper.curiosity_discount)
            for chunk, bonus, value in zip(chunks, bonuses, values, strict=True)
        ]
        targets = [advantage + value[:-1] for advantage, value in zip(found, values, strict=True)]
        columns[ADVANTAGES] = columns[ADVANTAGES] + self.hyper.curiosity_at(self.done) * np.concatenate(found)
        columns[CURIOSITY_TARGETS] = np.concatenate(targets)
        self.figures["novelty"] = float(novelty.mean())
        self.figures["curiosity_reward"] = float(np.concatenate(bonuses).mean())

    def _prediction_errors(
        self, network: Any, reached: list[NDArray[Any]], columns: dict[str, NDArray[Any]]
    ) -> Floats | None:
        """RND's error on every reached state (N,), and the column that its predictor learns from.

        None while warming up: then the observations are only measured, or the predictor would learn from badly
        whitened ones.
        """
        warming_up = self.streams.observations.count < self.hyper.warm_up_steps
        whitened = self.streams.whitened(np.concatenate(reached))
        if warming_up:
            return None
        columns[WHITENED] = whitened
        with torch.inference_mode():
            parts = [network.novelty(part) for part in inference_chunks(torch.from_numpy(whitened))]
        errors: Floats = torch.cat(parts).numpy()
        return errors


def joined(chunks: list[Any], column: Any) -> NDArray[Any]:
    """One column of all chunks, in order."""
    return np.concatenate([np.asarray(column(chunk)) for chunk in chunks])


def explained(targets: Floats, predicted: Floats) -> float:
    """Share of the targets' variance that the critic explains: 1 is perfect, 0 is a constant, below is worse."""
    variance = float(targets.var()) if len(targets) else 0.0
    return 0.0 if variance < 1e-12 else 1.0 - float((targets - predicted).var()) / variance


def select(batch: Mapping[str, torch.Tensor], rows: NDArray[np.int64]) -> Rows:
    """These rows of every column, on the device of the batch."""
    chosen = torch.from_numpy(rows).to(next(iter(batch.values())).device)
    return {name: column.index_select(0, chosen) for name, column in batch.items()}


def minibatch_rows(count: int, *, size: int, epochs: int, shuffle: bool) -> Iterator[NDArray[np.int64]]:
    """Minibatches of `size` of `count` rows until each was used `epochs` times; the last ones may use some again.

    Rows and random numbers are those of RLlib's MiniBatchCyclicIterator, which shuffles, slices and joins every column;
    here each minibatch is one selection per column. The first pass keeps the batch's order, as there: it is shuffled
    only after each pass. ValueError for an empty batch.
    """
    if not count:
        raise ValueError("a batch without steps has no minibatches")
    order = np.arange(count)
    start, passes = 0, 0
    while passes < epochs:
        missing, parts = size, []
        while start + missing >= count:
            parts.append(order[start:])
            missing -= count - start
            start, passes = 0, passes + 1
            if shuffle:
                order = order[np.random.permutation(count)]
        parts.append(order[start : start + missing])
        start += missing
        yield np.concatenate(parts)


def minibatch_pieces(
    begins: NDArray[np.bool_], *, size: int, epochs: int, shuffle: bool
) -> Iterator[NDArray[np.int64]]:
    """As `minibatch_rows`, of whole pieces: as many as have about `size` rows. `begins` (n,) marks their first rows."""
    pieces = int(np.count_nonzero(begins))
    drawn = max(1, round(size * pieces / len(begins)))
    for chosen in minibatch_rows(pieces, size=drawn, epochs=epochs, shuffle=shuffle):
        yield rows_of_pieces(begins, chosen)
