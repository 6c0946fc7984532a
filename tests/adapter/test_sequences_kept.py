"""No value of a sequence is given out twice, whatever becomes of the program or of the machine."""

from __future__ import annotations

import errno
import random
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

import eddyline
from eddyline.adapter.catalog_documents import catalog_changes, catalog_of
from eddyline.adapter.durability import Durability
from eddyline.adapter.restoring import restored_engine
from eddyline.adapter.sequences import Sequences
from eddyline.errors import DatabaseError
from eddyline.frontends.connection import Connection
from eddyline.repr.types import BIGINT
from eddyline.sql.catalog_view import SequenceDef
from eddyline.testing.torn_files import Faults, PowerLoss, TornFiles

SEEDS = 400


def counting(key: str, increment: int = 1, maximum: int = 10**9) -> SequenceDef:
    low, high = (1, maximum) if increment > 0 else (-maximum, -1)
    start = low if increment > 0 else high
    return SequenceDef(BIGINT, start, increment, low, high, 1, cycle=False, position=key, first=start)


def taken(sequences: Sequences, of: SequenceDef, count: int) -> list[int]:
    values = sequences.take(of, of.position, count, kept=True)
    assert values is not None
    return [int(value) for value in values]


def opened(files: TornFiles) -> Connection:
    engine = restored_engine(Durability(files, log_file_bytes=4000, least_log_bytes=8000), interactive=False)
    return Connection(engine, owner=True)


def killed(db: Connection, files: TornFiles) -> TornFiles:
    """The folder as the program leaves it that has it open, and is killed now."""
    left = files.kill()
    db.close()
    return left


def one(db: Connection, query: str) -> Any:
    return db.execute(query).fetchall()[0][0]


def _check_losses_of_power(seed: int) -> int:
    """How many values were given out before the last of several losses of power or of the program."""
    rng = random.Random(seed)
    kept = [counting("a"), counting("b", -3)]
    given: dict[str, list[int]] = {of.position: [] for of in kept}
    files = TornFiles(rng)
    for _ in range(4):
        files.faults = Faults(lose_power_at=rng.randrange(rng.choice((8, 40))))
        durability = None
        try:
            durability = Durability(files, log_file_bytes=3000)
            sequences = Sequences(durability)
            sequences.begin(kept)
            for _ in range(rng.randrange(1, 40)):
                of = rng.choice(kept)
                count = rng.choice((1, 1, 1, 5, 100))
                given[of.position] += taken(sequences, of, count)
            if rng.random() < 0.3:
                sequences.close(kept)
        except PowerLoss:
            pass
        files = files.crash(rng) if rng.random() < 0.7 else files.kill()
        files.faults = Faults()
    for of in kept:
        sequences = Sequences(Durability(files))
        sequences.begin([of])
        values = [*given[of.position], *taken(sequences, of, 1)]
        files = files.kill()
        assert len(set(values)) == len(values), f"seed {seed}"
        assert values == sorted(values, reverse=of.increment < 0), f"seed {seed}"
    return sum(map(len, given.values()))


def test_a_loss_of_power_gives_no_value_again() -> None:
    given = [_check_losses_of_power(seed) for seed in range(SEEDS)]
    assert sum(count > 100 for count in given) > SEEDS // 4


def test_a_block_costs_one_write_and_a_bulk_insert_is_one_block() -> None:
    durability = Durability(TornFiles(random.Random(0)))
    sequences, of = Sequences(durability), counting("a")
    sequences.begin([of])
    before = durability.group.groups
    assert [taken(sequences, of, 1) for _ in range(33)] == [[n] for n in range(1, 34)]
    assert durability.group.groups == before + 1
    assert taken(sequences, of, 1) == [34]
    assert durability.group.groups == before + 2
    assert taken(sequences, of, 100_000)[-1] == 100_034
    assert durability.group.groups == before + 3
    durability.close()


def test_closing_skips_nothing_and_a_kill_what_is_left_of_the_block() -> None:
    files = TornFiles(random.Random(0))
    db = opened(files)
    db.executescript("CREATE TABLE t (id serial PRIMARY KEY, v int); INSERT INTO t (v) VALUES (1), (2), (3)")
    db.close()
    db = opened(files)
    assert one(db, "INSERT INTO t (v) VALUES (4) RETURNING id") == 4
    files = killed(db, files)
    again = opened(files)
    assert one(again, "SELECT last_value FROM t_id_seq") == 36
    assert one(again, "INSERT INTO t (v) VALUES (5) RETURNING id") == 37
    assert [r[0] for r in again.execute("SELECT id FROM t ORDER BY id")] == [1, 2, 3, 4, 37]
    again.close()


def test_what_a_transaction_does_to_a_sequence_is_there_after_a_kill_if_it_was_committed() -> None:
    files = TornFiles(random.Random(0))
    db = opened(files)
    db.executescript(
        "BEGIN; CREATE SEQUENCE s; SELECT nextval('s'), nextval('s'); COMMIT;"
        "CREATE TABLE t (id int GENERATED ALWAYS AS IDENTITY, v int);"
        "INSERT INTO t (v) SELECT 1 FROM generate_series(1, 9);"
        "CREATE SEQUENCE r; SELECT setval('r', 500); BEGIN; ALTER SEQUENCE r RESTART WITH 7; ROLLBACK;"
        "BEGIN; TRUNCATE t RESTART IDENTITY; COMMIT; CREATE SEQUENCE gone; SELECT nextval('gone'); DROP SEQUENCE gone;"
    )
    files = killed(db, files)
    db = opened(files)
    assert one(db, "SELECT nextval('s')") == 3
    assert one(db, "SELECT nextval('r')") == 501
    assert one(db, "INSERT INTO t (v) VALUES (1) RETURNING id") == 1
    engine = db._engine
    assert engine.durability is not None
    with engine.durability.group.exclusive() as log:
        assert sum(name.startswith("sequence/") for name in log.state.documents) == 3
    db.execute("ALTER SEQUENCE r RESTART")
    files = killed(db, files)
    db = opened(files)
    assert one(db, "SELECT nextval('r')") == 1
    db.close()


def test_a_full_disk_gives_out_nothing_beyond_the_block_and_then_goes_on() -> None:
    files = TornFiles(random.Random(0))
    db = opened(files)
    db.execute("CREATE SEQUENCE s")
    assert one(db, "SELECT nextval('s')") == 1
    files.faults = Faults(fail=lambda operation, _: errno.ENOSPC if operation in ("write", "create") else None)
    assert [one(db, "SELECT nextval('s')") for _ in range(32)] == list(range(2, 34))
    with pytest.raises(DatabaseError) as caught:
        db.execute("SELECT nextval('s')")
    assert caught.value.sqlstate == "53100"
    with pytest.raises(DatabaseError):
        db.execute("SELECT setval('s', 5)")
    files.faults = Faults()
    assert one(db, "SELECT nextval('s')") == 34
    db.close()


def test_a_program_whose_directory_was_taken_over_gives_out_nothing() -> None:
    files = TornFiles(random.Random(0))
    db = opened(files)
    db.execute("CREATE SEQUENCE s")
    assert one(db, "SELECT nextval('s')") == 1
    files.take_over()
    with pytest.raises(DatabaseError) as caught:
        db.execute("SELECT nextval('s')")
    assert caught.value.sqlstate == "55006"
    db.close()


def test_threads_share_a_sequence_without_a_value_in_common(tmp_path: Path) -> None:
    with eddyline.connect(tmp_path / "live.eddy", interactive=False) as db:
        db.execute("CREATE TABLE t (id bigserial PRIMARY KEY, v int)")
        found: list[int] = []

        def insert(number: int) -> None:
            with db.session() as mine:
                for _ in range(10):
                    rows = mine.execute("INSERT INTO t (v) VALUES ($1), ($1), ($1) RETURNING id", [number])
                    found.extend(row[0] for row in rows.fetchall())

        threads = [threading.Thread(target=insert, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(found) == list(range(1, 181))


def test_a_copy_of_a_database_in_use_gives_out_what_was_not_given(tmp_path: Path) -> None:
    with eddyline.connect(tmp_path / "live.eddy", interactive=False) as db:
        db.execute("CREATE TABLE t (id serial PRIMARY KEY, v int)")
        db.execute("INSERT INTO t (v) VALUES (1), (2)")
        db.backup(tmp_path / "copy.eddy")
    with eddyline.connect(tmp_path / "copy.eddy", interactive=False) as db:
        assert one(db, "INSERT INTO t (v) VALUES (3) RETURNING id") == 35


def test_a_directory_from_before_sequences_is_understood() -> None:
    files = TornFiles(random.Random(0))
    db = opened(files)
    db.executescript("CREATE TABLE t (id int PRIMARY KEY DEFAULT 7, v text); CREATE VIEW v AS SELECT id FROM t")
    snapshot = db._engine.catalog.snapshot()
    db.close()
    documents = dict(catalog_changes(catalog_of({}), snapshot, 9).put)
    for name, data in documents.items():
        if name.startswith("item/"):
            item = msgspec.msgpack.decode(data)
            del item["sequence"]
            for column in item["columns"]:
                del column["identity"]
            documents[name] = msgspec.msgpack.encode(item)
    assert catalog_of(documents).by_id == snapshot.by_id
