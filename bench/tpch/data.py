"""The tables, made by tpchgen-cli once for each scale factor and kept in the checkout's cache folder."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

__all__ = ["SCHEMA", "TABLES", "Refresh", "split_orders", "tables"]

_CACHE: Final = Path(__file__).parent.parent.parent / ".cache" / "tpch"

TABLES: Final = ("region", "nation", "supplier", "part", "partsupp", "customer", "orders", "lineitem")

SCHEMA: Final = """
CREATE TABLE region (r_regionkey bigint PRIMARY KEY, r_name text NOT NULL, r_comment text NOT NULL);
CREATE TABLE nation (n_nationkey bigint PRIMARY KEY, n_name text NOT NULL, n_regionkey bigint NOT NULL,
    n_comment text NOT NULL);
CREATE TABLE supplier (s_suppkey bigint PRIMARY KEY, s_name text NOT NULL, s_address text NOT NULL,
    s_nationkey bigint NOT NULL, s_phone text NOT NULL, s_acctbal numeric(15, 2) NOT NULL, s_comment text NOT NULL);
CREATE TABLE part (p_partkey bigint PRIMARY KEY, p_name text NOT NULL, p_mfgr text NOT NULL, p_brand text NOT NULL,
    p_type text NOT NULL, p_size int NOT NULL, p_container text NOT NULL, p_retailprice numeric(15, 2) NOT NULL,
    p_comment text NOT NULL);
CREATE TABLE partsupp (ps_partkey bigint, ps_suppkey bigint, ps_availqty int NOT NULL,
    ps_supplycost numeric(15, 2) NOT NULL, ps_comment text NOT NULL, PRIMARY KEY (ps_partkey, ps_suppkey));
CREATE TABLE customer (c_custkey bigint PRIMARY KEY, c_name text NOT NULL, c_address text NOT NULL,
    c_nationkey bigint NOT NULL, c_phone text NOT NULL, c_acctbal numeric(15, 2) NOT NULL, c_mktsegment text NOT NULL,
    c_comment text NOT NULL);
CREATE TABLE orders (o_orderkey bigint PRIMARY KEY, o_custkey bigint NOT NULL, o_orderstatus text NOT NULL,
    o_totalprice numeric(15, 2) NOT NULL, o_orderdate date NOT NULL, o_orderpriority text NOT NULL,
    o_clerk text NOT NULL, o_shippriority int NOT NULL, o_comment text NOT NULL);
CREATE TABLE lineitem (l_orderkey bigint, l_partkey bigint NOT NULL, l_suppkey bigint NOT NULL, l_linenumber int,
    l_quantity numeric(15, 2) NOT NULL, l_extendedprice numeric(15, 2) NOT NULL, l_discount numeric(15, 2) NOT NULL,
    l_tax numeric(15, 2) NOT NULL, l_returnflag text NOT NULL, l_linestatus text NOT NULL, l_shipdate date NOT NULL,
    l_commitdate date NOT NULL, l_receiptdate date NOT NULL, l_shipinstruct text NOT NULL, l_shipmode text NOT NULL,
    l_comment text NOT NULL, PRIMARY KEY (l_orderkey, l_linenumber));
"""


def tables(scale: float) -> dict[str, pa.Table]:
    """All tables, at a scale factor, whole in memory.  RuntimeError if tpchgen-cli is not there or fails."""
    folder = _CACHE / f"sf{scale:g}"
    if not folder.exists():
        _generate(scale, folder)
    return {name: _plain(pq.read_table(folder / f"{name}.parquet")) for name in TABLES}


def _generate(scale: float, folder: Path) -> None:
    beside = Path(sysconfig.get_path("scripts")) / "tpchgen-cli"
    program = str(beside) if beside.exists() else shutil.which("tpchgen-cli")
    if program is None:
        raise RuntimeError("tpchgen-cli is not installed: install the extra 'bench'")
    making = folder.with_name(f"{folder.name}.making")
    making.mkdir(parents=True, exist_ok=True)
    command = [program, "parquet", "-s", f"{scale:g}", "--output-dir", str(making), "--overwrite"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"tpchgen-cli failed:\n{done.stderr}")
    making.rename(folder)


def _plain(table: pa.Table) -> pa.Table:
    """Without dictionaries and views, in one piece: both engines read the same buffers."""
    fields = []
    for field in table.schema:
        kind: Any = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
        fields.append(pa.field(field.name, pa.large_string() if text else kind))
    return table.cast(pa.schema(fields)).combine_chunks()


class Refresh:
    """One pair of refresh functions: new orders with their lineitems, and old ones to be deleted."""

    def __init__(self, new: dict[str, pa.Table], old: dict[str, pa.Table]) -> None:
        self.new = new
        self.old = old

    def after(self, found: dict[str, pa.Table]) -> dict[str, pa.Table]:
        """``found`` with the changes made."""
        kept = dict(found)
        for name, column in (("orders", "o_orderkey"), ("lineitem", "l_orderkey")):
            gone = pc.is_in(found[name][column], value_set=self.old["orders"]["o_orderkey"].combine_chunks())
            kept[name] = pa.concat_tables([found[name].filter(pc.invert(gone)), self.new[name]]).combine_chunks()
        return kept

    @property
    def rows(self) -> int:
        return sum(t.num_rows for part in (self.new, self.old) for t in part.values())


def split_orders(found: dict[str, pa.Table], rounds: int) -> tuple[dict[str, pa.Table], list[Refresh]]:
    """(the tables to begin with, the changes of each round): 0.1 % of the orders come, as many go, drawn by a seed."""
    keys = found["orders"]["o_orderkey"].to_numpy()
    each = max(1, len(keys) // 1000)
    drawn = np.random.default_rng(11).permutation(keys)[: 2 * each * rounds].reshape(2, rounds, each)
    refreshes = [Refresh(_of_orders(found, new), _of_orders(found, old)) for new, old in zip(*drawn, strict=True)]
    first = dict(found)
    for name, column in (("orders", "o_orderkey"), ("lineitem", "l_orderkey")):
        later = pc.is_in(found[name][column], value_set=pa.array(drawn[0].ravel()))
        first[name] = found[name].filter(pc.invert(later)).combine_chunks()
    return first, refreshes


def _of_orders(found: dict[str, pa.Table], keys: np.ndarray[Any, np.dtype[np.int64]]) -> dict[str, pa.Table]:
    wanted = pa.array(keys)
    return {
        "orders": found["orders"].filter(pc.is_in(found["orders"]["o_orderkey"], value_set=wanted)),
        "lineitem": found["lineitem"].filter(pc.is_in(found["lineitem"]["l_orderkey"], value_set=wanted)),
    }
