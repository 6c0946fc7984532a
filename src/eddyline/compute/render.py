"""From a dataflow description to operators on one worker.

Every worker renders the same operators in the same order, so that the numbers of exchange channels agree.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

import eddyline.expr.functions  # noqa: F401 - registers the implementations that plans name
from eddyline.compute.allowed import Allowed
from eddyline.compute.context import BUDGET_ROWS, OperatorContext
from eddyline.compute.dataflow import Dataflow
from eddyline.compute.exchange import Channel, ExchangeOperator, Mailboxes
from eddyline.compute.exports import ElsewhereExport, Export, IndexExport, MaterializedViewSink, SubscribeSink
from eddyline.compute.frozen import CollectedArrangement, FrozenIndex
from eddyline.compute.imports import ImportFrozenOperator, ImportIndexOperator, ImportSourceOperator
from eddyline.compute.log_reads import ImportLogOperator, LogImport
from eddyline.compute.operators.arrange import ArrangeOperator, new_arrangement
from eddyline.compute.operators.basic_reduce import BasicReduceOperator
from eddyline.compute.operators.collect import CollectOperator
from eddyline.compute.operators.constant import ConstantOperator
from eddyline.compute.operators.distinct import DistinctOperator, ThresholdOperator
from eddyline.compute.operators.flat_map import FlatMapOperator
from eddyline.compute.operators.join import JoinOperator
from eddyline.compute.operators.keyed_state import KeyedState
from eddyline.compute.operators.mfp import MfpOperator
from eddyline.compute.operators.partner import Partner
from eddyline.compute.operators.recompute import RecomputeOperator
from eddyline.compute.operators.reduce import ReduceOperator
from eddyline.compute.operators.snapshot_join import SnapshotJoinOperator, Unarranged
from eddyline.compute.operators.snapshot_reduce import SnapshotReduceOperator
from eddyline.compute.operators.snapshot_top_k import SnapshotTopKOperator
from eddyline.compute.operators.stateless import FlattenOperator, NegateOperator, UnionOperator
from eddyline.compute.operators.top_k import TopKOperator
from eddyline.compute.partitions import Partition, dealt_sources, has_place, partitions
from eddyline.compute.selection import passed_by, selection_of
from eddyline.compute.stream import ArrangedOutput, ArrangedStream, Arrangement, Operator, Output, Stream
from eddyline.errors import make_error
from eddyline.plan import dataflow as plan
from eddyline.plan.operators import inputs_of
from eddyline.protocol.messages import Response
from eddyline.protocol.sources import Selection, SourceReader, Storage
from eddyline.repr.ids import is_log
from eddyline.repr.time import Frontier, Time
from eddyline.trace.hasher import Hasher
from eddyline.trace.run import Layout

__all__ = ["RenderContext", "SharedSources", "render"]


class SharedSources:
    """Readers of a dataflow's sources, opened once for all workers of the process, so that their shares fit together.

    The workers are numbered from ``first`` on; ``storage`` has the rows of this process.
    """

    def __init__(self, storage: Storage, workers: int, *, first: int = 0) -> None:
        self._storage = storage
        self._workers = workers
        self._first = first
        self._lock = threading.Lock()
        self._open: dict[tuple[int, int], dict[int, SourceReader]] = {}  # guarded by _lock

    def of_all(self, workers: int) -> bool:
        """Whether these are all the workers of the replica: those of other processes have sources of their own."""
        return self._workers == workers

    def take(
        self,
        dataflow: int,
        position: int,
        worker: int,
        id: str,
        as_of: Time,
        selection: Selection | None,
        key: tuple[int, ...] | None,
    ) -> SourceReader:
        """The share of ``worker``.  The first worker to ask opens the collection."""
        with self._lock:
            shares = self._open.get((dataflow, position))
            if shares is None:
                opened = self._storage.open_source(id, as_of, self._workers, selection, key)
                shares = self._open[(dataflow, position)] = dict(enumerate(opened, self._first))
            reader = shares.pop(worker)
            if not shares:
                del self._open[(dataflow, position)]
        return reader


@dataclass(frozen=True, slots=True)
class RenderContext:
    """What a worker lends to the dataflows it renders."""

    worker: int
    workers: int
    hasher: Hasher
    storage: Storage
    sources: SharedSources
    mailboxes: Mailboxes
    indexes: Mapping[str, IndexExport]
    respond: Callable[[Response], None]
    budget_rows: int = BUDGET_ROWS


def render(
    description: plan.DataflowDescription,
    number: int,
    runtime: RenderContext,
    frozen: Mapping[str, FrozenIndex] | None = None,
    logs: Mapping[str, LogImport] | None = None,
) -> Dataflow:
    """The dataflow, not yet activated.  XX000 if an import is not there or already compacted past as_of.

    ``frozen``: imported indexes of the other runtime, which may be bound later; ``logs``: imported logs, likewise.
    """
    context = OperatorContext(
        hasher=runtime.hasher,
        as_of=Time(description.as_of),
        until=Frontier(description.until),
        worker=runtime.worker,
        workers=runtime.workers,
        budget_rows=runtime.budget_rows,
        allowed=_nothing_allowed(description),
    )
    builder = _Builder(description, number, runtime, context, frozen or {}, logs or {})
    if context.single_time:
        builder.left_to_joins = _left_to_joins(description, builder.readers)
        builder.result = _result(description, builder.readers)
    for position, node in enumerate(description.operators):
        builder.add(position, node)
    return Dataflow(
        number=number,
        description=description,
        operators=builder.operators,
        exports=builder.exports,
        arrangements=builder.arrangements,
        exchanges=builder.exchanges,
        sources=builder.sources,
        inputs=builder.inputs,
        outputs=builder.outputs,
        states=builder.states,
        allowed=context.allowed,
        selected=passed_by(description),
    )


def _left_to_joins(description: plan.DataflowDescription, readers: Mapping[int, int]) -> frozenset[int]:
    """The arrangements that nobody but one join reads, once: a read's join may do without."""
    operators = description.operators
    joined = {i for operator in operators if isinstance(operator, plan.Join) for i in inputs_of(operator)}
    return frozenset(i for i in joined if readers[i] == 1 and isinstance(operators[i], plan.Arrange))


def _result(description: plan.DataflowDescription, readers: Mapping[int, int]) -> int | None:
    """The arrangement without a key that a one-shot read exports and does not read itself."""
    if description.dataflow_class is not plan.DataflowClass.ONE_SHOT_READ:
        return None
    operators = description.operators
    exported = [operator.input for operator in operators if isinstance(operator, plan.ExportIndex)]
    for position in exported:
        node = operators[position]
        if readers[position] == 1 and isinstance(node, plan.Arrange) and not node.key:
            return position
    return None


def _nothing_allowed(description: plan.DataflowDescription) -> Allowed:
    exports = description.exports
    return Allowed([e.id for e in exports], [e.id for e in exports if isinstance(e, plan.ExportMaterializedView)])


@dataclass(slots=True)
class _Builder:
    description: plan.DataflowDescription
    number: int
    runtime: RenderContext
    context: OperatorContext
    frozen: Mapping[str, FrozenIndex]
    logs: Mapping[str, LogImport]
    operators: list[Operator] = field(default_factory=list)
    exports: dict[str, Export] = field(default_factory=dict)
    arrangements: list[Arrangement] = field(default_factory=list)
    exchanges: dict[int, ExchangeOperator] = field(default_factory=dict)
    sources: list[ImportSourceOperator] = field(default_factory=list)
    inputs: list[tuple[str, Output | ArrangedOutput]] = field(default_factory=list)
    states: list[KeyedState] = field(default_factory=list)
    edges: dict[int, Output | ArrangedOutput] = field(default_factory=dict)
    #: of a read: positions of arrangements that are left to the join that reads them
    left_to_joins: frozenset[int] = frozenset()
    unarranged: dict[int, Unarranged] = field(default_factory=dict)
    #: likewise, of the arrangement that is its result, if nobody but readers of all of it will have it
    result: int | None = None
    flattened: dict[int, Output] = field(default_factory=dict)
    outputs: list[Output] = field(default_factory=list)
    #: the arrangements made here, by position
    arranging: dict[int, ArrangeOperator] = field(default_factory=dict)
    #: how many operators read each position
    readers: Counter[int] = field(init=False)
    #: the keys by which storage deals its rows out to the workers, by position
    dealt: dict[int, tuple[int, ...]] = field(default_factory=dict)
    #: of the edge behind each operator
    partitions: list[Partition] = field(init=False)

    def __post_init__(self) -> None:
        operators = self.description.operators
        self.readers = Counter(i for operator in operators for i in inputs_of(operator))
        if self.runtime.workers > 1 and self.runtime.sources.of_all(self.runtime.workers):
            logs = {p for p, o in enumerate(operators) if isinstance(o, plan.ImportSource) and is_log(o.id)}
            self.dealt = {p: key for p, key in dealt_sources(operators).items() if p not in logs}
        self.partitions = partitions(operators, self.dealt)

    def _output(self) -> Output:
        output = Output()
        self.outputs.append(output)
        return output

    def add(self, position: int, node: plan.Operator) -> None:
        name = f"{self.description.name}/{position}:{type(node).__name__}"
        match node:
            case plan.ConstantSource() | plan.BatchSource():
                output = self._output()
                self.operators.append(ConstantOperator(name, node, output, self.context))
                self.edges[position] = output
            case plan.ImportSource() | plan.ImportIndex():
                self._add_source(position, node, name)
                self.inputs.append((node.id, self.edges[position]))
            case plan.ExportIndex() | plan.ExportMaterializedView() | plan.ExportSubscribe():
                self._add_export(node, name)
            case plan.Arrange():
                self._add_arrange(position, node, name)
            case _:
                output = self._output()
                operator = self._operator(node, name, output)
                if isinstance(operator, RecomputeOperator):
                    self.states += operator.states
                self.operators.append(operator)
                self.edges[position] = output

    def _add_source(self, position: int, node: plan.ImportSource | plan.ImportIndex, name: str) -> None:
        context = self.context
        match node:
            case plan.ImportSource() if node.id in self.logs:
                output = self._output()
                self.operators.append(ImportLogOperator(name, self.logs[node.id], output, context))
                self.edges[position] = output
            case plan.ImportSource():
                output = self._output()
                selection = selection_of(self.description, position)
                reader = self.runtime.sources.take(
                    self.number, position, self.runtime.worker, node.id, context.as_of, selection,
                    self.dealt.get(position),
                )  # fmt: skip
                source = ImportSourceOperator(name, reader, output, context)
                self.sources.append(source)
                self.operators.append(source)
                self.edges[position] = output
            case plan.ImportIndex():
                frozen = self.frozen.get(node.id)
                if frozen is not None:
                    arranged = ArrangedOutput(frozen.arrangement)
                    self.operators.append(ImportFrozenOperator(name, frozen, arranged, context))
                    self.edges[position] = arranged
                    return
                index = self.runtime.indexes.get(node.id)
                if index is None:
                    raise make_error("XX000", f"index {node.id} is not on this replica")
                arranged = ArrangedOutput(index.arrangement)
                self.operators.append(ImportIndexOperator(name, index.output, arranged, context))
                self.edges[position] = arranged

    def _add_arrange(self, position: int, node: plan.Arrange, name: str) -> None:
        layout = Layout(node.types, node.key)
        stream = self._exchanged(node.input, node.key)
        if position == self.result:
            collected = CollectedArrangement(layout)
            edge = ArrangedOutput(collected)
            self.operators.append(CollectOperator(name, stream, node.types, collected, edge, self.context))
            self.edges[position] = edge
            return
        if position in self.left_to_joins:
            self.unarranged[position] = Unarranged(name, stream, layout, self.context)
            return
        arrangement = new_arrangement(layout, self.context)
        output = ArrangedOutput(arrangement)
        self.arranging[position] = ArrangeOperator(name, stream, layout, output, self.context)
        self.operators.append(self.arranging[position])
        self.arrangements.append(arrangement)
        self.edges[position] = output

    def _introduce(self, own: int, other: int, stream: ArrangedStream, *, is_left: bool) -> None:
        """Tells the arrangement at ``own``, if a join alone reads it, of the join's other side, which is ``stream``."""
        arranging = self.arranging.get(own)
        if arranging is not None and self.readers[own] == 1 and arranging.layout.key:
            arranging.meet(Partner(stream, self.arranging.get(other), self.context, is_first=is_left))

    def _operator(self, node: plan.Operator, name: str, output: Output) -> Operator:
        context = self.context
        match node:
            case plan.MapFilterProject():
                return MfpOperator(name, self._stream(node.input), node.mfp, output, context)
            case plan.FlatMap():
                return FlatMapOperator(name, self._stream(node.input), node, output, context)
            case plan.Union():
                return UnionOperator(name, [self._stream(i) for i in node.inputs], output, context)
            case plan.Negate():
                return NegateOperator(name, self._stream(node.input), output, context)
            case plan.Join():
                return self._join(node, name, output)
            case plan.Reduce():
                stream = self._exchanged(node.input, node.key)
                if node.functions is plan.ReduceFunctions.BASIC:
                    return BasicReduceOperator(name, stream, node, output, context)
                if context.single_time:
                    return SnapshotReduceOperator(name, stream, node, output, context)
                return ReduceOperator(name, stream, node, output, context)
            case plan.Distinct():
                return DistinctOperator(name, self._by_row(node), node, output, context)
            case plan.Threshold():
                return ThresholdOperator(name, self._by_row(node), node, output, context)
            case plan.TopK():
                grouped = self._exchanged(node.input, node.group)
                if context.single_time and node.limit is not None:
                    return SnapshotTopKOperator(name, grouped, node, output, context)
                return TopKOperator(name, grouped, node, output, context)
            case (
                plan.ImportSource()
                | plan.ImportIndex()
                | plan.ConstantSource()
                | plan.BatchSource()
                | plan.Arrange()
                | plan.ExportIndex()
                | plan.ExportMaterializedView()
                | plan.ExportSubscribe()
            ):
                raise make_error("XX000", f"{name} is no operator over streams")
            case _:
                assert_never(node)

    def _join(self, node: plan.Join, name: str, output: Output) -> Operator:
        unarranged = self.unarranged.get(node.left), self.unarranged.get(node.right)
        if unarranged != (None, None):
            left = unarranged[0] or self._arranged(node.left)
            right = unarranged[1] or self._arranged(node.right)
            return SnapshotJoinOperator(name, left, right, node, output, self.context)
        streams = self._arranged(node.left).connect(), self._arranged(node.right).connect()
        self._introduce(node.left, node.right, streams[1], is_left=True)
        self._introduce(node.right, node.left, streams[0], is_left=False)
        return JoinOperator(name, *streams, node, output, self.context)

    def _by_row(self, node: plan.Distinct | plan.Threshold) -> Stream:
        return self._exchanged(node.input, tuple(range(len(node.types))))

    def _add_export(
        self, node: plan.ExportIndex | plan.ExportMaterializedView | plan.ExportSubscribe, name: str
    ) -> None:
        match node:
            case plan.ExportIndex():
                self.exports[node.id] = IndexExport(node.id, self._arranged(node.input), node.types, self.context)
            case plan.ExportMaterializedView():
                stream = self._exchanged(node.input, None)
                if self.runtime.worker:
                    self.exports[node.id] = ElsewhereExport(node.id)
                    return
                view = MaterializedViewSink(
                    name, node.id, stream, node.types, storage=self.runtime.storage, context=self.context
                )
                self.operators.append(view)
                self.exports[node.id] = view
            case plan.ExportSubscribe():
                stream = self._exchanged(node.input, None)
                if self.runtime.worker:
                    self.exports[node.id] = ElsewhereExport(node.id)
                    return
                subscription = SubscribeSink(
                    name, node.id, stream, node.types,
                    with_snapshot=node.with_snapshot, respond=self.runtime.respond, context=self.context,
                )  # fmt: skip
                self.operators.append(subscription)
                self.exports[node.id] = subscription

    def _arranged(self, position: int) -> ArrangedOutput:
        edge = self.edges[position]
        if not isinstance(edge, ArrangedOutput):
            raise make_error("XX000", f"{self.description.name}: operator {position} is not arranged")
        return edge

    def _stream(self, position: int) -> Stream:
        """The edge as a stream; an arranged one is flattened once, for all its readers."""
        edge = self.edges[position]
        if isinstance(edge, Output):
            return edge.connect()
        if position not in self.flattened:
            output = self._output()
            name = f"{self.description.name}/{position}:flatten"
            self.operators.append(FlattenOperator(name, edge.connect(), output, self.context))
            self.flattened[position] = output
        return self.flattened[position].connect()

    def _exchanged(self, position: int, key: Sequence[int] | None) -> Stream:
        """The edge's rows on the workers that own their keys (None: all on worker 0)."""
        stream = self._stream(position)
        if self.runtime.workers == 1 or (key is not None and has_place(self.partitions[position], key)):
            return stream
        output = self._output()
        port = len(self.exchanges)
        exchange = ExchangeOperator(
            f"{self.description.name}/{position}:exchange",
            stream,
            None if key is None else tuple(key),
            output,
            channel=Channel(self.number, port),
            mailboxes=self.runtime.mailboxes,
            context=self.context,
        )
        self.operators.append(exchange)
        self.exchanges[port] = exchange
        return output.connect()
