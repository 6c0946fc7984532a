"""Late data: corrections and deletions change the totals, and the past can still be read.

python examples/late_data.py
"""

from __future__ import annotations

import io

import eddyline

MONDAY = """id,meter,day,kwh
1,north,2026-03-02,10.5
2,south,2026-03-02,7.25
3,north,2026-03-02,99.0
"""
TUESDAY = """id,meter,day,kwh
4,north,2026-03-03,11.0
5,south,2026-03-03,
"""


def open_meters() -> eddyline.Connection:
    db = eddyline.connect()
    db.executescript("""
        CREATE TABLE readings (id int PRIMARY KEY, meter text NOT NULL, day date NOT NULL, kwh numeric(8,2));
        CREATE VIEW daily AS
            SELECT day, sum(kwh) AS kwh, count(*) AS readings, count(*) - count(kwh) AS missing
            FROM readings GROUP BY day;
        CREATE DEFAULT INDEX ON daily;
    """)
    return db


def report(db: eddyline.Connection, title: str, query: str = "SELECT * FROM daily") -> None:
    print(title)
    for day, kwh, readings, missing in sorted(db.execute(query).fetchall()):
        print(f"  {day}: {kwh} kWh from {readings} readings{f', {missing} missing' if missing else ''}")


def main() -> None:
    with open_meters() as db, db.session() as audit:
        copy = "COPY readings FROM STDIN (FORMAT csv, HEADER)"
        db.copy(copy, io.StringIO(MONDAY))
        first = db.copy(copy, io.StringIO(TUESDAY)).time
        report(db, "as the files came")

        audit.execute("BEGIN")  # from here on, this session sees the day as it is now
        audit.execute("SELECT count(*) FROM readings")

        db.execute("BEGIN")
        db.execute("UPDATE readings SET kwh = 9.90 WHERE id = 3")  # a wrong value
        db.execute("UPDATE readings SET kwh = 6.75 WHERE id = 5")  # a late one
        db.execute("DELETE FROM readings WHERE id = 1")  # a double one
        db.execute("COMMIT")
        report(db, "corrected")
        report(db, "before the corrections", f"SELECT * FROM daily AS OF {first}")
        report(audit, "as the audit sees it")
        audit.rollback()
        report(audit, "after the audit")


if __name__ == "__main__":
    main()
