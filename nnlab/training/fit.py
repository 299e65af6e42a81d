"""`fit` and `resume`: run an engine to the planned step, log on the way, stop without loss."""

from __future__ import annotations

import math
import numbers
import time
from collections.abc import Iterable
from typing import Any

import numpy as np

from nnlab.backends import Array
from nnlab.engines import Engine, Session
from nnlab.engines import engine as engine_by_name
from nnlab.errors import CheckpointMismatch, DivergenceError
from nnlab.nn.losses import Loss, loss_by_name
from nnlab.nn.sequential import Sequential
from nnlab.optim import Optimizer, Schedule, TrainState
from nnlab.optim.schedules import as_schedule
from nnlab.training.checks import check_run
from nnlab.training.history import History
from nnlab.training.interrupts import Interrupts
from nnlab.training.progress import Progress

Callback = Any  # an object with any of on_start, on_log, on_checkpoint, on_end


def fit(
    model: Sequential,
    x: Array,
    y: Array,
    *,
    loss: Loss | str,
    optimizer: Optimizer,
    rate: float | Schedule,
    steps: int,
    batch_size: int | None = None,
    rng: np.random.Generator | None = None,
    engine: str | Engine = "eager",
    log_every: int | None = None,
    callbacks: Iterable[Callback] = (),
) -> History:
    """Train `model` in place on x (rows, inputs) and y (rows, outputs), both in its home and dtype.

    loss: a function of nnlab.nn.losses or its name. rate: a number or a schedule of the global step. batch_size:
    rows a step, shuffled anew each epoch from `rng`; None takes all rows each step. log_every: steps between two
    entries of the history, by default steps // 100; the losses between two logs come to the host in one copy.
    engine: "eager", "tiled" (the host), "graph", "fused" or "fused-tf32" (a GPU), or "auto", which picks one
    and prints why.
    callbacks: objects with any of on_start, on_log, on_checkpoint, on_end, each called with the TrainState;
    on_checkpoint comes after every on_log, when the state may be saved. Ctrl-C ends the run after the current step
    and returns what there is; `resume(history.state, x, y)` goes on.

    Raises ValueError, TypeError, ShapeError, MixedBackendError, UnknownName or EngineCannot before the first step;
    then DivergenceError at the first loss that is not finite, EngineCannot where a callback changed what the engine
    has compiled in, ValueError for a bad rate of a schedule. Whatever ends a run between two logs, a second Ctrl-C
    too, model and optimiser go back to the last one.
    """
    steps = _whole("steps", steps)
    log_every = max(1, steps // 100) if log_every is None else _whole("log_every", log_every)
    if batch_size is not None:
        batch_size = _whole("batch_size", batch_size)
        if rng is None:
            raise ValueError("batches are shuffled: pass rng=np.random.default_rng(seed)")
    loss = loss_by_name(loss) if isinstance(loss, str) else loss
    if not callable(loss):
        raise TypeError(f'loss must be a function of nnlab.nn.losses or its name, such as "mse", not {loss!r}')
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"optimizer must be an optimiser such as Adam() or SGD(), not {optimizer!r}")
    state = TrainState(
        model=model,
        loss=loss,
        optimizer=optimizer,
        schedule=as_schedule(rate),
        steps=steps,
        log_every=log_every,
        batch_size=batch_size,
        batch_seed=int(rng.integers(2**63)) if rng is not None and batch_size is not None else None,
        engine=engine.name if isinstance(engine, Engine) else engine,
    )
    return _run(state, x, y, engine, callbacks)


def resume(
    state: TrainState,
    x: Array,
    y: Array,
    *,
    steps: int | None = None,
    engine: str | Engine | None = None,
    callbacks: Iterable[Callback] = (),
    override: bool = False,
) -> History:
    """Go on with a run from where its state stands, bit for bit as if it had never stopped.

    steps: the total over all parts. A total other than the planned one raises CheckpointMismatch, since schedules
    are laid out over the total; override=True accepts it, keeps the schedule, and notes it in
    state.extra["overrides"]; a total below the steps already taken is a ValueError. engine: by default the one of the
    run so far, with its settings; "tiled" takes its threads from the cores here unless Tiled(tile, threads) said how
    many, and on another number of them the last bits may differ. A run that is already complete returns at once.
    Raises what `fit` raises.
    """
    if steps is not None and steps != state.steps:
        steps = _whole("steps", steps)
        if not override:
            raise CheckpointMismatch(
                f"this run was planned for {state.steps} steps and its schedule is laid out over them; "
                f"resume(..., steps={steps}) needs override=True"
            )
        if steps < state.step:
            raise ValueError(f"this run has taken {state.step} steps already; its total cannot become {steps}")
        note = {"at_step": state.step, "from_steps": state.steps, "to_steps": steps}
        state.extra.setdefault("overrides", []).append(note)
        state.steps = steps
        _cut_log(state, sum(step < state.step for step in state.log["step"]))  # the longer run measures its end again
    if state.step == state.steps:
        return History(state)
    if engine is None:
        engine = engine_by_name(state.engine, **state.extra.get("engine_settings", {}))
    return _run(state, x, y, engine, callbacks)


def _run(state: TrainState, x: Array, y: Array, engine: str | Engine, callbacks: Iterable[Callback]) -> History:
    if not isinstance(callbacks, Iterable):
        raise TypeError(f"callbacks must be a list, not {callbacks!r}: put it into one, callbacks=[...]")
    callbacks = list(callbacks)
    check_run(state, x, y)
    runner = engine if isinstance(engine, Engine) else engine_by_name(engine)
    state.engine = runner.name
    state.extra.pop("engine_settings", None)
    if runner.settings:
        state.extra["engine_settings"] = runner.settings
    state.optimizer.prepare(state.model.parameters)
    session = runner.prepare(state, x, y)
    if not any(isinstance(callback, Progress) for callback in callbacks):
        callbacks.append(Progress())

    with Interrupts() as interrupts:
        session.stop = interrupts.requested
        _call(callbacks, "on_start", state)
        try:
            while state.step < state.steps and not interrupts.requested():
                if _advance_to_log(session, state):
                    _call(callbacks, "on_log", state)
                    _call(callbacks, "on_checkpoint", state)
        finally:
            _call(callbacks, "on_end", state)
    history = History(state, interrupted=state.step < state.steps)
    if history.interrupted:
        print(f"stopped at step {state.step} of {state.steps}; nnlab.training.resume(history.state, x, y) goes on")
    return history


def _advance_to_log(session: Session, state: TrainState) -> bool:
    """Run to the next multiple of log_every or the end, and log; False where Ctrl-C came in between.

    Whatever goes wrong, the state is put back: callbacks never see, and never save, one in the middle of a step.
    """
    kept = [(value, value.copy()) for value in state.arrays.values()]
    steps, entries = (state.step, state.optimizer.step), len(state.log["step"])
    try:
        return _advance(session, state)
    except BaseException:
        for value, before in kept:
            value[...] = before
        state.step, state.optimizer.step = steps
        _cut_log(state, entries)
        raise


def _advance(session: Session, state: TrainState) -> bool:
    xp, first = state.model.backend.xp, state.step
    target = min(state.steps, (first // state.log_every + 1) * state.log_every)
    seconds = state.log["seconds"][-1] if state.log["seconds"] else 0.0
    start = time.perf_counter()
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # the check below is the one that tells
        losses = session.advance(target - first)
        if state.step == state.steps:  # the finished model's loss comes along in the same copy
            losses = xp.concatenate([losses, xp.reshape(session.evaluate(), (1,))])
    read = state.model.backend.to_host(losses)
    seconds += time.perf_counter() - start

    bad = np.flatnonzero(~np.isfinite(read))
    if bad.size:
        at = int(bad[0])
        before = float(read[at - 1]) if at else (state.log["loss"][-1] if state.log["loss"] else None)
        raise _divergence(state, first + at, before, back=first)
    if first % state.log_every == 0 and state.step > first:
        _log(state, first, float(read[0]), seconds)
    if state.step == state.steps:
        _log(state, state.step, float(read[-1]), seconds)
    return state.step == target


def _divergence(state: TrainState, step: int, before: float | None, *, back: int) -> DivergenceError:
    last = "there was no finite loss before it" if before is None else f"the last finite loss was {before:.6g}"
    return DivergenceError(
        f"the loss is not finite at step {step}; {last}. The rate was {state.schedule(step):g}: try a tenth of it, "
        f"and standardise x and y. The model is back at step {back}.",
        step=step,
        last_loss=before,
    )


def _log(state: TrainState, step: int, loss: float, seconds: float) -> None:
    entry = {"step": step, "loss": loss, "rate": state.schedule(step), "seconds": seconds}
    for name, value in entry.items():
        state.log[name].append(value)


def _cut_log(state: TrainState, keep: int) -> None:
    """Drop all entries but the first `keep`."""
    for column in state.log.values():
        del column[keep:]


def _call(callbacks: list[Callback], moment: str, state: TrainState) -> None:
    for callback in callbacks:
        hook = getattr(callback, moment, None)
        if hook is not None:
            hook(state)


def _whole(name: str, value: int) -> int:
    number = isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
    if not number or int(value) != value or value < 1:
        raise ValueError(f"{name} must be a whole number from 1, not {value!r}")
    return int(value)
