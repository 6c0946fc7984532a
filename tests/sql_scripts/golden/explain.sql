-- What EXPLAIN shows: the plan, the indexes it uses, and whether the answer is read straight from one.

CREATE TABLE orders (id int PRIMARY KEY, cust int NOT NULL, amount numeric(12,2));
CREATE TABLE customers (cust int PRIMARY KEY, name text);
CREATE VIEW spend AS SELECT cust, sum(amount) AS total, count(*) AS n FROM orders GROUP BY cust;
CREATE INDEX spend_cust ON spend (cust);

-- A lookup by the index's key is the fast path: no dataflow is built.
EXPLAIN SELECT * FROM spend WHERE cust = 7;
--> QUERY PLAN
--> Fast path: lookup in index spend_cust on spend, key (7)
EXPLAIN SELECT total FROM spend WHERE cust = 7 AND n > 1;
--> QUERY PLAN
--> Fast path: lookup in index spend_cust on spend, key (7)
-->   Filter (n > 1)
-->   Project total
EXPLAIN SELECT * FROM spend WHERE cust IN (1, 2, 3);
--> QUERY PLAN
--> Fast path: lookup in index spend_cust on spend, key (1), (2), (3)

-- So is all of an index, filtered, ordered or limited.
EXPLAIN SELECT * FROM spend;
--> QUERY PLAN
--> Fast path: walk of index spend_cust on spend
EXPLAIN SELECT * FROM spend WHERE total > 100 ORDER BY total DESC LIMIT 3;
--> QUERY PLAN
--> Fast path: walk of index spend_cust on spend
-->   Filter (total > 100.00)
--> Finish: order total DESC limit 3

-- Without an index that serves, a one-shot dataflow reads snapshots of the tables.
EXPLAIN SELECT * FROM orders WHERE amount > 10;
--> QUERY PLAN
--> One-shot dataflow
-->   Filter (amount > 10.00)
-->     Get orders
EXPLAIN SELECT o.id, c.name FROM orders o JOIN customers c USING (cust) WHERE o.amount > 10;
--> QUERY PLAN
--> One-shot dataflow
-->   Project id, name
-->     Inner join on (cust = cust)
-->       Project id, cust
-->         Filter (amount > 10.00)
-->           Get orders
-->       Get customers
EXPLAIN SELECT cust, max(amount) FROM orders GROUP BY cust;
--> QUERY PLAN
--> One-shot dataflow
-->   Reduce by cust: max(amount)
-->     Project cust, amount
-->       Get orders
EXPLAIN SELECT s.cust, c.name, s.total FROM spend s LEFT JOIN customers c ON c.cust = s.cust;
--> QUERY PLAN
--> One-shot dataflow
-->   Project cust, name, total
-->     Left join on (cust = cust)
-->       Project cust, total
-->         Get spend
-->       Get customers
--> Indexes used: spend_cust

-- An index on a table serves lookups and joins alike.
CREATE INDEX customers_cust ON customers (cust);
EXPLAIN SELECT o.id, c.name FROM orders o JOIN customers c USING (cust);
--> QUERY PLAN
--> One-shot dataflow
-->   Project id, name
-->     Inner join on (cust = cust)
-->       Project id, cust
-->         Get orders
-->       Get customers
--> Indexes used: customers_cust
EXPLAIN SELECT name FROM customers WHERE cust = 3;
--> QUERY PLAN
--> Fast path: lookup in the primary key of customers, key (3)
-->   Project name

-- A constant false needs no data.
EXPLAIN SELECT * FROM orders WHERE 1 = 2;
--> QUERY PLAN
--> Fast path: 0 constant row(s)
EXPLAIN SELECT 1 + 2 AS three;
--> QUERY PLAN
--> Fast path: 1 constant row(s)
-->   Map 3
-->   Project #0
EXPLAIN SELECT nope FROM orders;
--> ERROR 42703: column "nope" does not exist

SHOW INDEXES;
--> name | schema | on | key | cluster
--> customers_cust | public | customers | cust | default
--> spend_cust | public | spend | cust | default

-- What is left to do once the rows are there: order and cut them.
EXPLAIN SELECT id FROM orders ORDER BY amount DESC, id LIMIT 10 OFFSET 2;
--> QUERY PLAN
--> One-shot dataflow
-->   Project id, amount
-->     Get orders
--> Finish: order #1 DESC, id limit 10 offset 2
EXPLAIN SELECT id FROM (SELECT id, amount FROM orders ORDER BY amount LIMIT 5) q;
--> QUERY PLAN
--> One-shot dataflow
-->   Project id
-->     TopK order amount limit 5
-->       Project id, amount
-->         Get orders
EXPLAIN SELECT DISTINCT ON (cust) cust, id FROM orders ORDER BY cust, amount DESC;
--> QUERY PLAN
--> One-shot dataflow
-->   TopK by cust order cust, amount DESC limit 1
-->     Project cust, id, amount
-->       Get orders
--> Finish: order cust, #2 DESC
EXPLAIN UPDATE orders SET amount = 0 WHERE id = 3;
--> QUERY PLAN
--> Update on orders
-->   Fast path: lookup in the primary key of orders, key (3)
-->     Map 0.00
-->     Project id, cust, amount, id, cust, (0.00)
EXPLAIN VIEW spend;
--> QUERY PLAN
--> Reduce by cust: sum(amount), count(*)
-->   Project cust, amount
-->     Get orders
EXPLAIN SUBSCRIBE spend;
--> QUERY PLAN
--> Subscribe
-->   Fast path: walk of index spend_cust on spend
