"""Each example runs and prints what it says."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
MAX_LINES = 80

EXPECTED = {
    "agents_memory": """\
dispute about bridge: planner says open, scout says closed
settled about bridge: planner says open, scout says closed
[('planner', 'closed'), ('scout', 'closed')]
[]
""",
    "alerts": """\
press is too hot
oven is too hot
press is well again
oven is well again
""",
    "dashboard": """\
after 1000 orders
  east      63,923.51 from   245 orders
  north     76,967.31 from   302 orders
  south     62,158.24 from   245 orders
  west      50,760.25 from   208 orders
  best: customer 0 (26,762.10), customer 1 (11,564.21), customer 2 (10,722.75)
after 2000 orders
  east     117,037.41 from   470 orders
  north    158,388.08 from   611 orders
  south    123,881.15 from   484 orders
  west     102,230.86 from   435 orders
  best: customer 0 (54,974.17), customer 1 (20,940.15), customer 2 (17,755.22)
after 3000 orders
  east     169,909.56 from   685 orders
  north    238,336.44 from   930 orders
  south    185,453.21 from   729 orders
  west     156,661.72 from   656 orders
  best: customer 0 (77,628.29), customer 1 (35,597.63), customer 2 (25,480.90)
without customer 0
  east     169,909.56 from   685 orders
  north    160,708.15 from   622 orders
  south    185,453.21 from   729 orders
  west     156,661.72 from   656 orders
  best: customer 1 (35,597.63), customer 2 (25,480.90), customer 5 (20,381.65)
""",
    "feature_store": """\
user 42: 40 9 2026-01-01 05:25:42+00:00 7.5
user 42: 41 10 2026-02-01 12:00:00+00:00 107.0
user 450 has bought for (0.0,)
training set: 500 rows, usr, clicks, items, last_click, spent
500 lookups in """,
    "late_data": """\
as the files came
  2026-03-02: 116.75 kWh from 3 readings
  2026-03-03: 11.00 kWh from 2 readings, 1 missing
corrected
  2026-03-02: 17.15 kWh from 2 readings
  2026-03-03: 17.75 kWh from 2 readings
before the corrections
  2026-03-02: 116.75 kWh from 3 readings
  2026-03-03: 11.00 kWh from 2 readings, 1 missing
as the audit sees it
  2026-03-02: 116.75 kWh from 3 readings
  2026-03-03: 11.00 kWh from 2 readings, 1 missing
after the audit
  2026-03-02: 17.15 kWh from 2 readings
  2026-03-03: 17.75 kWh from 2 readings
""",
}


def test_every_example_is_tested_and_short() -> None:
    files = {path.stem: path for path in EXAMPLES.glob("*.py")}
    assert files.keys() == EXPECTED.keys()
    assert all(len(path.read_text().splitlines()) < MAX_LINES for path in files.values())


@pytest.mark.parametrize("name", EXPECTED)
def test_it_prints_what_it_should(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert printed == EXPECTED[name] if EXPECTED[name].endswith("\n") else printed.startswith(EXPECTED[name])
