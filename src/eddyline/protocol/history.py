"""The command history: what a new or returning replica must be told, kept short.

The reduced history is the shortest command list that leads to the same state:
I1  one configuration, the last; live dataflows only, in creation order, each with its as_of moved up to the meet of
    its exports' compaction frontiers (times below it are no longer asked for);
I2  a dataflow lives while one of its exports is not dropped (compacted to the empty frontier);
I3  a compaction frontier of a live export past its dataflow's as_of follows the dataflow;
I4  peeks that are not answered come after the dataflows, each with its cancellation if there was one: the answer that
    says so may have been lost.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from eddyline.protocol.messages import (
    AllowCompaction,
    AllowWrites,
    CancelPeek,
    Command,
    CreateDataflow,
    CreateInstance,
    Hello,
    InitializationComplete,
    KeepSealed,
    Peek,
    Schedule,
    UpdateConfiguration,
)
from eddyline.repr.time import EMPTY

__all__ = ["CommandHistory"]

_REDUCE_EVERY = 1024


@dataclass(slots=True)
class _State:
    """What a replica that has run a command list knows."""

    hello: Hello | None = None
    instance: CreateInstance | None = None
    parameters: dict[str, str] = field(default_factory=dict)
    dataflows: list[CreateDataflow] = field(default_factory=list)
    schedules: dict[str, None] = field(default_factory=dict)
    writes: dict[str, None] = field(default_factory=dict)
    sealed: dict[str, None] = field(default_factory=dict)
    compactions: dict[str, int] = field(default_factory=dict)
    peeks: dict[str, Peek] = field(default_factory=dict)
    canceled: dict[str, CancelPeek] = field(default_factory=dict)
    initialized: bool = False

    def apply(self, command: Command) -> None:
        match command:
            case Hello():
                self.hello = command
            case CreateInstance():
                self.instance = command
            case UpdateConfiguration():
                self.parameters.update(command.parameters)
            case CreateDataflow():
                self.dataflows.append(command)
                for export in command.dataflow.exports:
                    self.compactions.pop(export.id, None)
            case Schedule():
                self.schedules[command.id] = None
            case AllowWrites():
                self.writes[command.id] = None
            case KeepSealed():
                self.sealed[command.id] = None
            case AllowCompaction():
                self.compactions[command.id] = max(command.frontier, self.compactions.get(command.id, 0))
            case Peek():
                self.peeks[command.uuid] = command
            case CancelPeek():
                self.canceled[command.uuid] = command
            case InitializationComplete():
                self.initialized = True

    def commands(self) -> list[Command]:
        out: list[Command] = [c for c in (self.hello, self.instance) if c is not None]
        if self.parameters:
            out.append(UpdateConfiguration(dict(self.parameters)))
        tail: list[Command] = []
        for create in self.dataflows:
            live = self._live_dataflow(create, tail)
            if live is not None:
                out.append(live)
        out.extend(tail)
        out.extend(self.peeks.values())
        out.extend(c for uuid, c in self.canceled.items() if uuid in self.peeks)
        if self.initialized:
            out.append(InitializationComplete())
        live_ids = {e.id for c in out if isinstance(c, CreateDataflow) for e in c.dataflow.exports}
        out.extend(AllowWrites(id) for id in self.writes if id in live_ids)
        out.extend(KeepSealed(id) for id in self.sealed if id in live_ids)
        return out

    def _live_dataflow(self, create: CreateDataflow, tail: list[Command]) -> CreateDataflow | None:
        exports = [e.id for e in create.dataflow.exports]
        frontiers = {id: max(self.compactions.get(id, 0), create.dataflow.as_of) for id in exports}
        if all(f == EMPTY for f in frontiers.values()):
            return None
        as_of = min(frontiers.values())
        for id in exports:
            if id in self.schedules:
                tail.append(Schedule(id))
            if frontiers[id] > as_of:
                tail.append(AllowCompaction(id, frontiers[id]))
        if as_of == create.dataflow.as_of:
            return create
        return CreateDataflow(msgspec.structs.replace(create.dataflow, as_of=as_of))


class CommandHistory:
    """The commands sent so far, reduced whenever they have grown.  Owner: the controller's caller."""

    def __init__(self) -> None:
        self._commands: list[Command] = []
        self._answered: set[str] = set()
        self._limit = _REDUCE_EVERY

    def push(self, command: Command) -> None:
        """Amortised O(1)."""
        self._commands.append(command)
        if len(self._commands) > self._limit:
            self.reduce()
            self._limit = max(_REDUCE_EVERY, 2 * len(self._commands))

    def answered(self, uuid: str) -> None:
        """The peek has its response; it is not sent again."""
        self._answered.add(uuid)

    def reduce(self) -> None:
        state = _State()
        for command in self._commands:
            state.apply(command)
        for uuid in self._answered:
            state.peeks.pop(uuid, None)
        self._answered.clear()
        self._commands = state.commands()

    def reduced(self, own: CommandHistory | None = None) -> tuple[Command, ...]:
        """``own``: what one replica alone was told, as if that had come after everything here."""
        self.reduce()
        if own is None or not own:
            return tuple(self._commands)
        own.reduce()
        both = _State()
        for command in (*self._commands, *own._commands):
            both.apply(command)
        return tuple(both.commands())

    def __len__(self) -> int:
        return len(self._commands)
