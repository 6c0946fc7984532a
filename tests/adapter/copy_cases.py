"""Inputs and outputs of COPY that are compared with PostgreSQL's."""

from __future__ import annotations

from typing import NamedTuple


class FromCase(NamedTuple):
    options: str
    data: bytes
    table: str = "a int, b text"
    columns: str = ""


_TEXT = [
    b"1\tx\n2\t\\N\n",
    b"1\tx",
    b"1\tx\n\\.\n2\ty\n",
    b"1\tx\n\\.",
    b"1\tx\\.\n2\ty\n",
    b"1\tx\\.zz\n",
    b"1\tx\r\n2\ty\r\n",
    b"1\tx\r2\ty\r",
    b"1\tx\n2\ty\r\n",
    b"1\tx\r\n2\ty\n",
    b"1\ta\\tb\\nc\\\\d\\101\\x41\\q\\\n",
    b"1\ta\\\nb\n",
    b"\n",
    b"1\n",
    b"1\tx\ty\n",
    b"1\t\\N\tx\n",
    b"\tx\n",
    b"99999999999\tx\n",
    b"1\tx\nz\tz\n",
    b"1\t\\0\n",
    b"1\t\xff\n",
    b"1\t\xe4\xb8\n",
    b"1\t\\377\n",
    b"1\tx\n\n2\ty\n",
    b"",
    b"1\tx\\",
    b"1\tx\n\\.\r\n",
    b"1\tx\n\\.x\n",
    b"abc\\.\n",
    b"1\tx\r\n\\.\n",
    b"1\tx\r\n\\.\r\n2\ty\r\n",
    b"1\t" + b"y" * 200 + b"\tz\n",
    b"x" * 200 + b"\ty\n",
    b"1\ta\x00b\n",
]
_CSV = [
    b"1,x\n2,\n",
    b'1,"x ""y"" z"\n2,""\n',
    b'1,"a\nb"\nx,y\n',
    b'1,a"b,c"d\n',
    b'1,"abc\n',
    b"1,x\n\\.\n2,y\n",
    b"1,x\n\\.",
    b"1,x\n\\.y,2\n",
    b"1,\\.\n",
    b'1,"\\."\n',
    b"1,x\r\n2,y\r\n",
    b'1,"x\r\ny"\r\nz,q\r\n',
    b"1,x\r\n2,y\n",
    b"1,x\n2,y\r\n",
    b'"1",x\n',
    b",x\n",
    b'"",x\n',
    b"\n",
    b"1\n",
    b"1,2,3\n",
    b" 1 ,x \n",
    b'1,"x" \n',
    b"1,\\N\n",
    b"1,x\n\n",
    b"\\.,x\n",
    b'1,"a\nb\nc"\n2,"d\n',
    b'1,"a"b"c"\n',
]
_BACKSLASH = [b'1,"a\\"b"\n', b'1,"a\\\\b"\n', b'1,"a\\nb"\n', b'1,a\\"b"\n', b'1,"a\\"\n']
_HEADERS = [b"a\tb\n1\tx\n", b"b\ta\n1\tx\n", b"a\n1\tx\n", b"\\N\tb\n", b""]
_MODIFIERS = [
    b"1\tabc\tx\t12.34\n",
    b"1\ta\ta\n\\N\ta\ta\t1\n",
    b"1\tabcd\tx\t1\n",
    b"1\tabc \txyz\t1\n",
    b"1\ta\ta\tx\n",
    b"1\ta\ta\t1\n\\N\t\xff\ta\t1\n",
    b"x\tabcd\ta\n",
    b"\\N\tb\tc\n",
    b"1\tb\tc\td\te\n",
]
_MODIFIED = "a int NOT NULL, b varchar(3), c char(2), d numeric(4,1)"
_ALL_TYPES = "b bool, d date, t time, ts timestamp, tz timestamptz, i interval, u uuid, r real, f float8, y bytea"
_ALL_VALUES = (
    b"t\t2020-02-29\t12:00:00.5\t2020-01-01 00:00:00\t2020-01-01 00:00:00+02\t1 mon 2 days 03:04:05\t"
    b"A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11\t1.5\t1e300\t\\\\x00ff\n"
)

FROM_CASES = [
    *(FromCase("", d) for d in _TEXT),
    *(FromCase("(FORMAT csv)", d) for d in _CSV),
    *(FromCase("(FORMAT csv, ESCAPE '\\')", d) for d in [*_CSV, *_BACKSLASH]),
    *(FromCase("(HEADER)", d) for d in _HEADERS),
    *(FromCase("(HEADER match)", d) for d in _HEADERS),
    *(FromCase("", d, _MODIFIED) for d in _MODIFIERS),
    FromCase("(FORMAT csv, HEADER match)", b'a,"b"\n1,2\n'),
    FromCase("(FORMAT csv, NULL 'nil')", b'1,nil\n2,"nil"\n3,\n'),
    FromCase("(FORMAT csv, FORCE_NULL (b))", b'1,""\n2,\n'),
    FromCase("(FORMAT csv, FORCE_NOT_NULL (b))", b'1,""\n2,\n'),
    FromCase("(FORMAT csv, NULL 'nil', FORCE_NOT_NULL (b), FORCE_NULL (b))", b'1,"nil"\n2,nil\n'),
    FromCase("(FORMAT csv, FORCE_NULL (zz))", b'1,""\n'),
    FromCase("(FORMAT csv, FORCE_NULL (b))", b"1\n", columns="(a)"),
    FromCase("(FORMAT csv, QUOTE '''', DELIMITER ';')", b"1;'a''b;c'\n"),
    FromCase("(DELIMITER '|', NULL '')", b"1|\n2|a\\|b\n"),
    FromCase("(DELIMITER 'A', NULL '')", b"1A\\x4A\n"),
    FromCase("", b"1\n2\n", "a int, b text DEFAULT 'd', c timestamptz", "(a)"),
    FromCase("", b"x\t1\n", columns="(b, a)"),
    FromCase("", _ALL_VALUES, _ALL_TYPES),
    FromCase("", _ALL_VALUES.replace(b"02-29", b"02-30"), _ALL_TYPES),
]

TO_OPTIONS = [
    "",
    "(HEADER)",
    "(FORMAT csv)",
    "(FORMAT csv, HEADER)",
    "(FORMAT csv, FORCE_QUOTE *)",
    "(FORMAT csv, FORCE_QUOTE (b), NULL 'N')",
    "(FORMAT csv, ESCAPE '\\', QUOTE '''', DELIMITER '|')",
    "(DELIMITER '|', NULL 'nil')",
    "(FORMAT csv, DELIMITER E'\\t')",
    "(FORMAT csv, DELIMITER ']')",
    "(DELIMITER '^')",
]
TO_QUERIES = [
    "SELECT 1 AS a, NULL::text AS b, true AS c",
    "SELECT * FROM (VALUES (1, 'x,y'), (2, E'a\\nb'), (3, ''), (4, 'q\"r'), (5, E'\\\\'), (6, E'\\t\\b\\f\\r'),"
    " (7, '\\N'), (8, '\\.'), (9, 'N'), (10, 'a|b]^'), (11, ' x '), (12, 'nil'), (13, 'a''b')) v (a, b) ORDER BY 1",
    "SELECT '\\.' AS b",
    "SELECT NULL::int AS b",
    "SELECT 1.50::numeric(5,2) AS b, 1e20::float8, '2020-01-01 00:00:00+00'::timestamptz, '1 day'::interval,"
    " '\\x00ff'::bytea, 'ab'::char(4), 0.1::real, date 'infinity'",
    "SELECT 1 AS b WHERE false",
]
