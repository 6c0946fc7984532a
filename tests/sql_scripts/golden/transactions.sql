-- Transactions: all of one, at one time, or nothing of it.

CREATE TABLE account (owner text PRIMARY KEY, cents bigint NOT NULL);
CREATE VIEW wealth AS SELECT sum(cents) AS cents FROM account;
CREATE DEFAULT INDEX ON wealth;
INSERT INTO account VALUES ('ann', 1000), ('bob', 500);

-- Nothing is seen before the commit, by others.
BEGIN;
INSERT INTO account VALUES ('cyd', 7);
--@ session other
SELECT * FROM wealth;
--> cents
--> 1500
--@ session main
COMMIT;
--@ session other
SELECT * FROM wealth;
--> cents
--> 1507
--@ session main

-- What is rolled back never was.
BEGIN;
DELETE FROM account;
ROLLBACK;
SELECT * FROM wealth;
--> cents
--> 1507

-- A savepoint is a place to go back to.
BEGIN;
INSERT INTO account VALUES ('dan', 1);
SAVEPOINT s;
INSERT INTO account VALUES ('eve', 2);
ROLLBACK TO SAVEPOINT s;
INSERT INTO account VALUES ('fay', 4);
COMMIT;
SELECT * FROM account;
--> owner | cents
--> ann | 1000
--> bob | 500
--> cyd | 7
--> dan | 1
--> fay | 4

-- An error ends the transaction; the rest of it is ignored until its end.
BEGIN;
INSERT INTO account VALUES ('gil', 8);
INSERT INTO account VALUES ('ann', 8);
--> ERROR 23505: duplicate key value violates unique constraint "account_pkey"
INSERT INTO account VALUES ('hal', 8);
--> ERROR 25P02: current transaction is aborted, commands ignored until end of transaction block
COMMIT;
SELECT * FROM wealth;
--> cents
--> 1512

-- A statement is a transaction of its own: one bad row, and no row is there.
INSERT INTO account SELECT 'x' || g, 10 / (3 - g) FROM generate_series(1, 5) AS g;
--> ERROR 22012: division by zero
SELECT count(*) FROM account;
--> count
--> 5

-- Read-only means it.
BEGIN READ ONLY;
DELETE FROM account;
--> ERROR 25006: cannot execute DELETE in a read-only transaction
ROLLBACK;
COMMIT;
ROLLBACK TO SAVEPOINT s;
--> ERROR 25P01: ROLLBACK TO SAVEPOINT can only be used in transaction blocks
