"""The schema and the live views.  The same text runs in Eddyline and, as the recomputation, in DuckDB."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["TABLES", "VIEWS", "View"]

TABLES = {
    "airlines": "carrier text PRIMARY KEY, name text NOT NULL",
    "airports": "faa text PRIMARY KEY, name text NOT NULL, tzone text",
    "planes": "tailnum text PRIMARY KEY, year int, manufacturer text, model text, seats int",
    "weather": (
        "origin text, time_hour timestamp, temp double precision, wind_speed double precision, visib double precision"
    ),
    "flights": (
        "id int PRIMARY KEY, flight_date date NOT NULL, hour int, flight int, dep_delay int, arr_delay int, "
        "distance int, carrier text, tailnum text, origin text, dest text, time_hour timestamp"
    ),
    "clock": "one int PRIMARY KEY, today date NOT NULL",
}


@dataclass(frozen=True, slots=True)
class View:
    """``keys``: how many leading columns identify a row (for matching rows in the comparison)."""

    name: str
    title: str
    query: str
    keys: int
    index: str


VIEWS = (
    View(
        "carrier_hours",
        "delay by carrier and hour",
        """
        SELECT carrier, hour, count(*) AS flights, count(dep_delay) AS flown, sum(dep_delay) AS delay,
               avg(arr_delay) AS mean_arrival, max(arr_delay) AS worst
        FROM flights GROUP BY carrier, hour
        """,
        2,
        "carrier, hour",
    ),
    View(
        "worst_planes",
        "ten worst planes",
        """
        SELECT tailnum, sum(arr_delay) AS total, count(arr_delay) AS flights
        FROM flights WHERE tailnum IS NOT NULL
        GROUP BY tailnum HAVING sum(arr_delay) IS NOT NULL
        ORDER BY total DESC, tailnum LIMIT 10
        """,
        1,
        "tailnum",
    ),
    View(
        "wind_by_maker",
        "flights joined with weather and planes",
        """
        SELECT p.manufacturer, count(*) AS flights, avg(w.wind_speed) AS wind, avg(f.dep_delay) AS delay,
               min(w.visib) AS worst_sight
        FROM flights f
        JOIN weather w ON w.origin = f.origin AND w.time_hour = f.time_hour
        JOIN planes p ON p.tailnum = f.tailnum
        GROUP BY p.manufacturer
        """,
        1,
        "manufacturer",
    ),
    View(
        "idle_airports",
        "airports with no flights today",
        """
        SELECT a.faa, a.name FROM airports a
        WHERE NOT EXISTS (SELECT 1 FROM flights f JOIN clock c ON f.flight_date = c.today WHERE f.dest = a.faa)
        """,
        1,
        "faa",
    ),
    View(
        "week",
        "rolling counts over seven days",
        """
        SELECT f.origin, count(*) AS flights, count(*) FILTER (WHERE f.dep_delay > 60) AS late,
               count(*) FILTER (WHERE f.dep_delay IS NULL) AS cancelled
        FROM (SELECT c.today - CAST(g.d AS int) AS day FROM clock c, generate_series(0, 6) AS g(d)) w
        JOIN flights f ON f.flight_date = w.day
        GROUP BY f.origin
        """,
        1,
        "origin",
    ),
    View(
        "airline_records",
        "correlated subqueries",
        """
        SELECT a.carrier, a.name,
               (SELECT max(f.dep_delay) FROM flights f WHERE f.carrier = a.carrier) AS record,
               (SELECT count(*) FROM flights f WHERE f.carrier = a.carrier AND f.dep_delay > 120) AS very_late
        FROM airlines a
        """,
        1,
        "carrier",
    ),
    View(
        "fleet_use",
        "outer join of planes with flights",
        """
        SELECT coalesce(p.manufacturer, '(unknown)') AS maker, count(f.id) AS flights,
               count(DISTINCT p.tailnum) AS planes, sum(f.distance) AS miles
        FROM flights f FULL JOIN planes p ON p.tailnum = f.tailnum
        GROUP BY coalesce(p.manufacturer, '(unknown)')
        """,
        1,
        "maker",
    ),
    View(
        "route_variety",
        "distinct counts by destination",
        """
        SELECT dest, count(DISTINCT tailnum) AS planes, count(DISTINCT carrier) AS carriers, count(*) AS flights
        FROM flights GROUP BY dest
        """,
        1,
        "dest",
    ),
    View(
        "worst_by_origin",
        "worst flight of each origin and month",
        """
        SELECT DISTINCT ON (origin, month) origin, month, id, arr_delay
        FROM (SELECT origin, CAST(extract(month FROM flight_date) AS int) AS month, id, arr_delay FROM flights
              WHERE arr_delay IS NOT NULL) m
        ORDER BY origin, month, arr_delay DESC, id
        """,
        2,
        "origin, month",
    ),
    View(
        "unknown_destinations",
        "destinations that no airport list knows",
        """
        SELECT f.dest, count(*) AS flights FROM flights f
        WHERE f.dest NOT IN (SELECT faa FROM airports) GROUP BY f.dest
        """,
        1,
        "dest",
    ),
)
