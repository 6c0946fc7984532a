-- NULL is no value: what is compared with it is neither true nor false.

CREATE TABLE a (x int);
CREATE TABLE b (y int);
CREATE VIEW missing AS SELECT x FROM a WHERE x NOT IN (SELECT y FROM b);
CREATE DEFAULT INDEX ON missing;
INSERT INTO a VALUES (1), (2), (NULL);

-- NOT IN of nothing keeps even NULL.
SELECT * FROM missing;
--> x
--> 1
--> 2
--> NULL
INSERT INTO b VALUES (1);
SELECT * FROM missing;
--> x
--> 2

-- One NULL in the subquery, and nothing is known to be missing.
INSERT INTO b VALUES (NULL);
SELECT * FROM missing;
--> x
DELETE FROM b WHERE y IS NULL;
SELECT * FROM missing;
--> x
--> 2

-- NOT EXISTS asks another question.
SELECT x FROM a WHERE NOT EXISTS (SELECT FROM b WHERE y = x);
--> x
--> 2
--> NULL
SELECT x, x = ANY (SELECT y FROM b) AS any, x <> ALL (SELECT y FROM b) AS all FROM a;
--> x | any | all
--> 1 | t | f
--> 2 | f | t
--> NULL | NULL | NULL

-- Groups, DISTINCT and set operations take NULLs as equal; joins do not, unless told so.
INSERT INTO a VALUES (NULL);
SELECT x, count(*) FROM a GROUP BY x;
--> x | count
--> 1 | 1
--> 2 | 1
--> NULL | 2
SELECT DISTINCT x FROM a;
--> x
--> 1
--> 2
--> NULL
SELECT x FROM a EXCEPT ALL SELECT NULL;
--> x
--> 1
--> 2
--> NULL
SELECT count(*) FROM a l JOIN a r ON l.x = r.x;
--> count
--> 2
SELECT count(*) FROM a l JOIN a r ON l.x IS NOT DISTINCT FROM r.x;
--> count
--> 6

-- Aggregates skip them; of nothing, all but count are NULL.
SELECT count(*) AS rows, count(x) AS known, sum(x), avg(x), min(x) FROM a;
--> rows | known | sum | avg | min
--> 4 | 2 | 3 | 1.5000000000000000 | 1
SELECT sum(x), count(x) FROM a WHERE x > 10;
--> sum | count
--> NULL | 0
SELECT x FROM a ORDER BY x DESC, x LIMIT 1;
--> x
--> NULL
SELECT x FROM a ORDER BY x DESC NULLS LAST LIMIT 1;
--> x
--> 2
