-- SUBSCRIBE: a query's result as changes.  One batch for each time at which it changed; diff is +n or -n copies.

CREATE TABLE bids (id int PRIMARY KEY, item text, price int);
CREATE VIEW best AS SELECT item, max(price) AS price FROM bids GROUP BY item;
INSERT INTO bids VALUES (1, 'cup', 10), (2, 'cup', 12), (3, 'pot', 7);

-- It begins with a snapshot, all at one time.
--@ subscription best
SUBSCRIBE best WITH (PROGRESS);
--@ changes best
--> time | diff | item | price
--> t1 | +1 | cup | 12
--> t1 | +1 | pot | 7

-- An update is one batch; what does not change the result is none.
INSERT INTO bids VALUES (4, 'cup', 15);
INSERT INTO bids VALUES (5, 'cup', 1);
UPDATE bids SET price = 20 WHERE id = 3;
--@ changes best
--> time | diff | item | price
--> t2 | +1 | cup | 15
--> t2 | -1 | cup | 12
--> t3 | +1 | pot | 20
--> t3 | -1 | pot | 7

-- A transaction is one time.
BEGIN;
DELETE FROM bids WHERE item = 'cup';
INSERT INTO bids VALUES (9, 'jar', 2);
COMMIT;
--@ changes best
--> time | diff | item | price
--> t4 | +1 | jar | 2
--> t4 | -1 | cup | 15
UPDATE bids SET price = price;
--@ changes best
--> time | diff | item | price

-- Without the snapshot only what comes after shows.
--@ subscription later
SUBSCRIBE (SELECT id, price FROM bids WHERE price > 5) WITH (SNAPSHOT false, PROGRESS);
--@ changes later
--> time | diff | id | price
INSERT INTO bids VALUES (10, 'jar', 6), (11, 'jar', 3);
--@ remember sixth
--@ changes later
--> time | diff | id | price
--> t5 | +1 | 10 | 6

-- From one time, up to but not including another: it ends by itself.
DELETE FROM bids WHERE id = 10;
--@ remember gone
INSERT INTO bids VALUES (12, 'jar', 9);
--@ subscription span
SUBSCRIBE (SELECT id FROM bids WHERE item = 'jar') AS OF :sixth UP TO :gone;
--@ changes span
--> time | diff | id
--> t5 | +1 | 10
--> t5 | +1 | 11
--> t5 | +1 | 9
--> end
SUBSCRIBE bids AS OF :gone UP TO :sixth;
--> ERROR 22023: UP TO :sixth is not after AS OF :gone
SUBSCRIBE nope;
--> ERROR 42P01: relation "nope" does not exist
