-- What times mean.  Every commit has a time, and every answer is exact at one.

CREATE TABLE stock (item text PRIMARY KEY, n int);
CREATE VIEW total AS SELECT count(*) AS items, sum(n) AS n FROM stock;
CREATE DEFAULT INDEX ON total;

INSERT INTO stock VALUES ('bolt', 10);
--@ remember first
INSERT INTO stock VALUES ('nut', 5), ('gear', 1);
--@ remember second
DELETE FROM stock WHERE item = 'bolt';

-- A read sees every commit that ended before it began.
SELECT * FROM total;
--> items | n
--> 2 | 6

-- The past can be read while it is kept.
SELECT * FROM stock AS OF :second;
--> item | n
--> bolt | 10
--> gear | 1
--> nut | 5
SELECT * FROM total AS OF :second;
--> items | n
--> 3 | 16
SELECT * FROM stock AS OF :first;
--> item | n
--> bolt | 10

-- Within a transaction all reads are of one time: nothing that others commit shows.
BEGIN;
SELECT * FROM total;
--> items | n
--> 2 | 6
--@ session other
UPDATE stock SET n = 100;
SELECT * FROM total;
--> items | n
--> 2 | 200
--@ session main
SELECT * FROM total;
--> items | n
--> 2 | 6
COMMIT;
SELECT * FROM total;
--> items | n
--> 2 | 200

-- No negative times, no times that are no times.
SELECT * FROM stock AS OF -1;
--> ERROR 22023: AS OF and UP TO take a time at or after the epoch
SELECT * FROM stock AS OF 'yesterday';
--> ERROR 0A000: date/time value "yesterday" is not supported
SELECT * FROM stock AS OF NULL;
--> ERROR 22023: AS OF and UP TO take a time at or after the epoch
