"""Mirrors against the storage that feeds them, message by message, each through its bytes."""

from __future__ import annotations

import random
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pyarrow as pa
import pytest

from eddyline.clusterd.mirror import MirrorStore
from eddyline.protocol.codec import decode_storage_request, decode_storage_update, encode
from eddyline.protocol.handshake import Seen
from eddyline.protocol.sources import SourceReader
from eddyline.protocol.storage_messages import FollowRefused, StorageRequest, StorageUpdate, Updates
from eddyline.repr.batch import Batch
from eddyline.repr.rowerror import ERR_TYPES
from eddyline.repr.time import EMPTY, MIN_TIME, Frontier, Time
from eddyline.repr.types import BIGINT, TEXT
from eddyline.storage.feed import StorageFeed
from eddyline.storage.store import TableStore
from eddyline.trace.hasher import Hasher
from tests.waiting import wait_until

TYPES = (BIGINT, TEXT)
Rows = list[tuple[int, str]]
Content = Counter[tuple[object, ...]]


def batch(rows: Rows, diffs: Sequence[int] | None = None, time: int = 0) -> Batch:
    columns = (pa.array([r[0] for r in rows], pa.int64()), pa.array([r[1] for r in rows], pa.large_string()))
    signs = np.array([1] * len(rows) if diffs is None else diffs, np.int64)
    return Batch(TYPES, columns, np.full(len(rows), time, np.int64), signs)


class Connected:
    """A store and ``processes`` mirror stores; messages wait until they are pumped, and are lost with a connection."""

    def __init__(self, processes: int = 1, *, retention_us: int = 2, backlog_bytes: int = 1 << 29) -> None:
        self.hasher = Hasher(5)
        self.store = TableStore(self.hasher, retention_us=retention_us)
        self.processes = processes
        self.now = 0.0
        self.mirrors = [
            MirrorStore(
                Hasher(9),
                retention_us=retention_us,
                backlog_bytes=backlog_bytes,
                linger_seconds=60,
                clock=lambda: self.now,
            )
            for _ in range(processes)
        ]
        self.time = 0
        self.sent: list[StorageUpdate] = []
        self.connect()

    def connect(self) -> None:
        self.down: list[deque[bytes]] = [deque() for _ in range(self.processes)]
        self.up: list[deque[bytes]] = [deque() for _ in range(self.processes)]
        self.feeds = [self._feed(p) for p in range(self.processes)]
        for p, mirror in enumerate(self.mirrors):
            mirror.connected(self._requests(p))

    def _feed(self, p: int) -> StorageFeed:
        down = self.down[p]

        def send(update: StorageUpdate) -> None:
            self.sent.append(update)
            down.append(encode(update))

        return StorageFeed(self.store, self.hasher, send=send, process=p, processes=self.processes, batch_rows=7)

    def _requests(self, p: int) -> Callable[[StorageRequest], None]:
        up = self.up[p]

        def send(request: StorageRequest) -> None:
            up.append(encode(request))

        return send

    def disconnect(self) -> None:
        for feed, mirror in zip(self.feeds, self.mirrors, strict=True):
            feed.close()
            mirror.disconnected()

    def pump(self, p: int | None = None, most: int = 1_000_000) -> int:
        """Delivers messages and steps feeds until nothing moves, or ``most`` were delivered."""
        delivered = 0
        moved = True
        while moved and delivered < most:
            moved = False
            for q in range(self.processes) if p is None else [p]:
                while self.up[q]:
                    self.feeds[q].receive(decode_storage_request(self.up[q].popleft()))
                    moved = True
                moved |= self.feeds[q].step()
                while self.down[q] and delivered < most:
                    self.mirrors[q].receive(decode_storage_update(self.down[q].popleft()))
                    delivered += 1
                    moved = True
        return delivered

    def table(self, id: str) -> None:
        self.store.create_table(id, TYPES, key=None, names=("k", "v"), table=id, constraint="", at=Time(self.time))

    def commit(self, id: str, rows: Rows, diffs: Sequence[int] | None = None) -> None:
        self.time += 1
        self.store.append({id: batch(rows, diffs)}, Time(self.time))

    def content(self, id: str, at: int) -> Content:
        return counted(self.store.snapshot(id, Time(at)), at)


def counted(batches: Iterable[Batch], at: int) -> Content:
    out: Content = Counter()
    for b in batches:
        for row, time, diff in zip(
            zip(*(c.to_pylist() for c in b.columns), strict=True), b.times, b.diffs, strict=True
        ):
            if time <= at:
                out[row] += int(diff)
    return Counter({row: n for row, n in out.items() if n})


class Follower:
    """Reads all shares of a source, keeping every update."""

    def __init__(self, readers: Sequence[SourceReader]) -> None:
        self.readers = readers
        self.batches: list[Batch] = []
        self.frontiers = [Frontier(MIN_TIME)] * len(readers)

    def read(self) -> None:
        for i, reader in enumerate(self.readers):
            while reader.pending():
                polled = reader.poll(5)
                assert polled.frontier >= self.frontiers[i]
                self.batches += polled.rows
                self.frontiers[i] = polled.frontier

    @property
    def frontier(self) -> int:
        return min(self.frontiers)

    def content(self, at: int) -> Content:
        assert at < self.frontier
        return counted(self.batches, at)


def test_a_mirror_has_the_history_and_follows_every_table_also_the_quiet_ones() -> None:
    c = Connected()
    c.table("a")
    c.table("b")
    c.commit("a", [(n, f"v{n}") for n in range(40)])
    c.commit("b", [(1, "only")])
    a, b = (Follower(c.mirrors[0].open_source(id, Time(c.time), 2)) for id in ("a", "b"))
    assert not a.readers[0].pending(), "nothing is told before the history is complete"
    c.pump()
    for n in range(4):
        c.commit("a", [(n, f"v{n}"), (100 + n, "new")], [-1, 1])
        c.pump()
        a.read()
        b.read()
        assert (a.frontier, b.frontier) == (c.time + 1, c.time + 1), "a commit closes its time for all tables"
        assert a.content(c.time) == c.content("a", c.time)
        assert b.content(c.time) == c.content("b", c.time)


def test_the_shares_of_processes_are_disjoint_and_together_complete() -> None:
    c = Connected(processes=3)
    c.table("a")
    c.commit("a", [(n, f"v{n % 7}") for n in range(200)])
    followers = [Follower(m.open_source("a", Time(c.time), 2)) for m in c.mirrors]
    c.pump()
    c.commit("a", [(n, f"v{n % 7}") for n in range(50, 90)], [-1] * 40)
    c.pump()
    for f in followers:
        f.read()
    parts = [f.content(c.time) for f in followers]
    assert all(len(p) > 10 for p in parts)
    assert all(not (parts[i] & parts[j]) for i in range(3) for j in range(i))
    assert sum(parts, Counter()) == c.content("a", c.time)


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("seed", range(12))
def test_a_connection_that_is_lost_anywhere_loses_and_doubles_nothing(seed: int, processes: int) -> None:
    """Commits, deliveries of a few messages, and lost connections in random order; then every time is compared."""
    rng = random.Random(seed)
    c = Connected(processes)
    c.table("a")
    c.table("quiet")
    c.commit("quiet", [(1, "q")])
    live: Rows = []
    followers: list[tuple[str, Time, list[Follower]]] = []
    expected: dict[tuple[str, int], Content] = {}
    for _ in range(60):
        match rng.randrange(8):
            case 0 | 1 | 2:
                out = rng.sample(live, min(len(live), rng.randrange(3)))
                new = [(rng.randrange(30), rng.choice("xyz")) for _ in range(rng.randrange(12))]
                for row in out:
                    live.remove(row)
                live += new
                c.commit("a", new + out, [1] * len(new) + [-1] * len(out))
                expected["a", c.time] = Counter(live)
                # What a follower has read stays readable for it, as the controller's hold on an import does.
            case 3 | 4:
                c.pump(rng.randrange(processes), most=rng.randrange(1, 9))
            case 5 if len(followers) < 4:
                id = rng.choice(["a", "quiet"])
                hold = c.store.hold(id)
                at = Time(max(hold.since, c.time - 1, 1))
                followers.append((id, at, [Follower(m.open_source(id, at, 2)) for m in c.mirrors]))
            case 6:
                c.disconnect()
                for _, _, each in followers:
                    for f in each:
                        f.read()
                c.connect()
    c.pump()
    for id, at, each in followers:
        for f in each:
            f.read()
            assert f.frontier == c.time + 1
        for time in range(at, c.time + 1):
            found = sum((f.content(time) for f in each), Counter())
            if id == "quiet":
                assert found == {(1, "q"): 1}
            elif ("a", time) in expected:
                assert found == expected["a", time], time


def test_a_mirror_that_was_complete_is_sent_what_it_lacks_only() -> None:
    c = Connected()
    c.table("a")
    c.commit("a", [(n, "x") for n in range(50)])
    hold = c.store.hold("a", Frontier(c.time))
    follower = Follower(c.mirrors[0].open_source("a", Time(c.time), 1))
    c.pump()
    follower.read()
    c.disconnect()
    c.commit("a", [(100, "y"), (101, "y")])
    c.commit("a", [(0, "x"), (102, "y")], [-1, 1])
    c.sent.clear()
    c.connect()
    c.pump()
    follower.read()
    sent = [u.rows.payload for u in c.sent if isinstance(u, Updates) and u.rows is not None]
    assert sum(len(b) for b in sent if isinstance(b, Batch)) == 4
    for time in range(c.time - 2, c.time + 1):
        assert follower.content(time) == c.content("a", time)
    hold.close()


def test_a_view_that_is_written_while_the_connection_is_lost_is_whole() -> None:
    c = Connected()
    c.store.create_view("v", TYPES, names=(), view="v", as_of=Time(0))
    mirror, none = c.mirrors[0], Batch.empty(ERR_TYPES)
    mirror.begin_view("v")
    mirror.write_view("v", batch([(1, "a")], time=1), none, Frontier(0), Frontier(2))
    c.pump()
    mirror.stage_view("v", batch([(2, "b")], time=2))
    c.pump()
    c.disconnect()
    mirror.write_view("v", batch([(3, "c")], time=2), none, Frontier(2), Frontier(3))
    mirror.write_view("v", batch([(1, "a")], [-1], time=3), none, Frontier(3), Frontier(4))
    c.connect()
    c.pump()
    assert c.content("v", 2) == {(1, "a"): 1, (2, "b"): 1, (3, "c"): 1}
    assert c.content("v", 3) == {(2, "b"): 1, (3, "c"): 1}
    assert not mirror._unwritten["v"], "storage has said so"
    c.disconnect()
    c.connect()
    c.pump()
    assert c.content("v", 3) == {(2, "b"): 1, (3, "c"): 1}
    mirror.write_view("v", batch([]), none, Frontier(4), EMPTY)
    c.pump()
    assert c.store.upper("v") == EMPTY == mirror.upper("v")


def test_a_mirror_is_shared_kept_for_a_while_and_given_up() -> None:
    c = Connected()
    c.table("a")
    c.commit("a", [(1, "x")])
    first = Follower(c.mirrors[0].open_source("a", Time(c.time), 1))
    c.pump()
    second = Follower(c.mirrors[0].open_source("a", Time(c.time), 1))
    second.read()
    assert second.content(c.time) == {(1, "x"): 1}, "at once, from what is there"
    for reader in (*first.readers, *second.readers):
        reader.close()
    c.now += 59
    c.mirrors[0].expire()
    histories = len(c.sent)
    third = Follower(c.mirrors[0].open_source("a", Time(c.time), 1))
    third.read()
    assert third.content(c.time) == {(1, "x"): 1}
    assert len(c.sent) == histories
    third.readers[0].close()
    c.now += 61
    c.mirrors[0].expire()
    c.pump()
    assert not c.mirrors[0]._mirrors
    assert not c.feeds[0]._followed


def test_a_quiet_collection_is_read_at_its_last_write_for_ever() -> None:
    c = Connected()
    c.table("a")
    c.table("busy")
    c.commit("a", [(n, "x") for n in range(30)])
    last = Time(c.time)
    hold = c.store.hold("a", Frontier(last))
    for _ in range(2):
        reader = Follower(c.mirrors[0].open_source("a", last, 1))
        c.pump()
        for n in range(10):
            c.commit("busy", [(n, "y")])
            c.pump()
        while c.mirrors[0].work(1000):
            pass
        reader.read()
        assert reader.content(last) == c.content("a", last)
    assert len(c.mirrors[0]._mirrors) == 1, "the second read found it"
    hold.close()


def test_a_time_that_the_mirror_has_forgotten_is_read_from_storage_anew() -> None:
    c = Connected()
    c.table("a")
    c.commit("a", [(1, "x")])
    early = Time(c.time)
    c.store.hold("a", Frontier(early))
    for n in range(8):
        c.commit("a", [(n, "y")])
    newest = Follower(c.mirrors[0].open_source("a", Time(c.time), 1))
    c.pump()
    for n in range(8):
        c.commit("a", [(n, "z")])
        c.pump()
    old = Follower(c.mirrors[0].open_source("a", early, 1))
    c.pump()
    newest.read()
    old.read()
    assert newest.content(c.time) == old.content(c.time) == c.content("a", c.time)
    assert old.content(early) == {(1, "x"): 1}


@pytest.mark.parametrize("before", [False, True])
def test_a_mirror_that_is_refused_for_one_reader_begins_anew_for_those_that_are_left(before: bool) -> None:
    """The first reader was dropped while the connection was lost, and storage has gone on behind the second one.

    ``before``: it leaves before the refusal comes.
    """
    c = Connected(retention_us=0)
    c.table("a")
    c.commit("a", [(1, "one")])
    first = Follower(c.mirrors[0].open_source("a", Time(c.time), 1))
    c.commit("a", [(2, "two")])
    second, at = Follower(c.mirrors[0].open_source("a", Time(c.time), 1)), c.time
    c.disconnect()
    c.store.hold("a", Frontier(at))
    c.commit("a", [(3, "three")])
    c.connect()
    if not before:
        c.pump()
        second.read()
        assert second.frontier == MIN_TIME, "storage has forgotten what the first one asks for"
    first.readers[0].close()
    c.pump()
    second.read()
    assert second.content(at) == c.content("a", at)
    assert second.content(c.time) == c.content("a", c.time)


def test_a_mirror_asks_on_a_new_connection_for_what_its_readers_want_still() -> None:
    c = Connected(retention_us=0)
    c.table("a")
    c.commit("a", [(1, "one")])
    first = Follower(c.mirrors[0].open_source("a", Time(c.time), 1))
    c.commit("a", [(2, "two")])
    second, at = Follower(c.mirrors[0].open_source("a", Time(c.time), 1)), c.time
    c.disconnect()
    first.readers[0].close()
    c.store.hold("a", Frontier(at))
    c.commit("a", [(3, "three")])
    c.connect()
    c.pump()
    second.read()
    assert second.content(at) == c.content("a", at)


def test_what_storage_has_forgotten_while_the_connection_was_lost_starves_whoever_reads_it_still() -> None:
    c = Connected()
    c.table("a")
    c.commit("a", [(1, "x")])
    follower = Follower(c.mirrors[0].open_source("a", Time(c.time), 1))
    c.pump()
    follower.read()
    c.disconnect()
    for n in range(9):
        c.commit("a", [(n, "y")])
    assert c.store.since("a") > follower.frontier - 1
    assert c.mirrors[0].starved() is None
    c.connect()
    c.pump()
    assert c.mirrors[0].starved() == "a"
    another = Follower(c.mirrors[0].open_source("a", Time(c.time), 1))
    c.pump()
    another.read()
    assert another.content(c.time) == c.content("a", c.time), "who comes now gets another mirror"
    follower.readers[0].close()
    assert c.mirrors[0].starved() is None
    c.commit("a", [(10, "y")])
    c.pump()
    another.read()
    assert another.content(c.time) == c.content("a", c.time)


def test_what_a_mirror_has_seen_is_a_commit_also_where_storage_has_folded_it_into_a_later_time() -> None:
    """By the time of no commit nobody could tell whether a directory has it."""
    c = Connected()
    c.table("a")
    c.commit("a", [(n, "x") for n in range(50)])
    newest = c.time
    c.time += 9
    c.store.append({}, Time(c.time))
    while c.store.work(1_000):
        continue
    since = c.store.since("a")
    assert since > newest
    follower = Follower(c.mirrors[0].open_source("a", Time(since), 1))
    assert c.mirrors[0].seen() is None
    c.pump()
    follower.read()
    assert c.mirrors[0].seen() == Seen(newest, c.time + 1)
    c.commit("a", [(0, "x")], [-1])
    c.pump()
    assert c.mirrors[0].seen() == Seen(c.time, c.time + 1)


@pytest.mark.parametrize("inherits", [True, False])
def test_what_was_asked_of_an_earlier_program_is_had_from_the_next_one(inherits: bool) -> None:
    """With what was committed and not told, also where that one has written before it hears of it."""
    c = Connected()
    for id in ("a", "b"):
        c.table(id)
        c.commit(id, [(n, "x") for n in range(50)])
    complete = Follower(c.mirrors[0].open_source("a", Time(c.time), 1))
    c.store.append({}, Time(c.time + 4))
    c.pump()
    complete.read()
    begun = Follower(c.mirrors[0].open_source("b", Time(c.time), 1))
    c.disconnect()
    c.mirrors[0].renewed()
    seen = c.mirrors[0].seen()
    assert seen == Seen(c.time - 1, c.time + 5)

    # Storage has what it had seen as of one time, and later commits at theirs.
    base, there = Time(seen.upper - 1), Time(seen.upper + 1)
    rows = [(id, part) for id in ("a", "b") for part in c.store.snapshot(id, base)]
    rows += [("a", batch([(0, "x"), (60, "z")], [-1, 1], there)), ("b", batch([(61, "z")], time=there))]
    c.store = TableStore(c.hasher, retention_us=2)
    for id in ("a", "b"):
        c.table(id)
    c.store.restore(rows, there, since=base)
    assert c.store.newest_write(["a"]) == there
    holds = [c.store.hold(id, Frontier(base)) for id in ("a", "b")]
    upto = Time(there + 9)
    if inherits:
        c.store.inherit(upto)
    else:
        c.store.append({}, upto)
    c.time = upto + 5
    c.commit("a", [(1, "x"), (100, "y")], [-1, 1])
    c.commit("b", [(1, "x"), (101, "y")], [-1, 1])
    assert [c.store.since("a"), c.store.since("b")] == [Frontier(base)] * 2
    c.sent.clear()
    c.connect()
    c.pump()
    refused = [u for u in c.sent if isinstance(u, FollowRefused)]
    assert len(refused) == (0 if inherits else 1), "this storage never had the time that was asked for"
    for follower, id in ((complete, "a"), (begun, "b")) if inherits else ((complete, "a"),):
        follower.read()
        for time in (there - 1, there, upto, c.time - 1, c.time):
            assert follower.content(time) == c.content(id, time)
    sent = [u.rows.payload for u in c.sent if isinstance(u, Updates) and u.rows is not None]
    told = sum(len(b) for b in sent if isinstance(b, Batch))
    assert told == 4 + (53 if inherits else 0), "what was complete is told only what it lacks"
    for hold in holds:
        hold.close()


def test_the_connection_waits_for_readers_that_are_behind_by_bytes() -> None:
    c = Connected(backlog_bytes=2_000)
    c.table("t")
    c.commit("t", [(0, "x")])
    (reader,) = c.mirrors[0].open_source("t", Time(1), 1)
    c.pump()
    while reader.pending():
        reader.poll(100)
    reader.set_steady()
    c.commit("t", [(n, "x" * 100) for n in range(50)])
    delivering = threading.Thread(target=c.pump)
    delivering.start()
    delivering.join(0.1)
    assert delivering.is_alive(), "few rows, and many bytes"
    read = 0

    def delivered() -> bool:
        nonlocal read
        read += reader.poll(1_000).row_count()
        return not delivering.is_alive()

    wait_until(delivered, "it goes on once they have read")
    assert read + reader.poll(1_000).row_count() == 50
