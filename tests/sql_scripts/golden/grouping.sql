-- Groups of groups, and rows chosen from groups.

CREATE TABLE sales (region text, product text, qty int);
CREATE VIEW cube AS
  SELECT region, product, sum(qty) AS qty, grouping(region, product) AS g
  FROM sales GROUP BY CUBE (region, product);
CREATE DEFAULT INDEX ON cube;
CREATE VIEW rollup_having AS
  SELECT region, product, count(*) AS n FROM sales GROUP BY ROLLUP (region, product) HAVING count(*) > 1;
CREATE DEFAULT INDEX ON rollup_having;
CREATE VIEW top AS SELECT DISTINCT ON (region) region, product, qty FROM sales ORDER BY region, qty DESC, product;
CREATE DEFAULT INDEX ON top;

-- The empty grouping set has its one row without any input.
SELECT * FROM cube;
--> region | product | qty | g
--> NULL | NULL | NULL | 3
SELECT * FROM rollup_having;
--> region | product | n
SELECT * FROM top;
--> region | product | qty

INSERT INTO sales VALUES ('north', 'nut', 5), ('north', 'bolt', 7), ('south', 'nut', 2), (NULL, 'nut', 1);
SELECT * FROM cube ORDER BY g, region, product;
--> region | product | qty | g
--> north | bolt | 7 | 0
--> north | nut | 5 | 0
--> south | nut | 2 | 0
--> NULL | nut | 1 | 0
--> north | NULL | 12 | 1
--> south | NULL | 2 | 1
--> NULL | NULL | 1 | 1
--> NULL | bolt | 7 | 2
--> NULL | nut | 8 | 2
--> NULL | NULL | 15 | 3
SELECT * FROM rollup_having;
--> region | product | n
--> north | NULL | 2
--> NULL | NULL | 4
SELECT * FROM top;
--> region | product | qty
--> north | bolt | 7
--> south | nut | 2
--> NULL | nut | 1

-- The best row goes, the next one takes its place; ties go by the rest of the order.
DELETE FROM sales WHERE qty = 7;
INSERT INTO sales VALUES ('south', 'gear', 2);
SELECT * FROM top;
--> region | product | qty
--> north | nut | 5
--> south | gear | 2
--> NULL | nut | 1

SELECT region, product, sum(qty) FROM sales GROUP BY GROUPING SETS ((region), (product), ()) ORDER BY 1, 2, 3;
--> region | product | sum
--> north | NULL | 5
--> south | NULL | 4
--> NULL | gear | 2
--> NULL | nut | 8
--> NULL | NULL | 1
--> NULL | NULL | 10
SELECT region, sum(qty) FILTER (WHERE product = 'nut') AS nuts, string_agg(product, ',' ORDER BY product) AS all
  FROM sales GROUP BY region;
--> region | nuts | all
--> north | 5 | nut
--> south | 2 | gear,nut
--> NULL | 1 | nut
SELECT count(DISTINCT product) AS products, avg(qty) AS mean FROM sales;
--> products | mean
--> 2 | 2.5000000000000000
SELECT region, product FROM sales GROUP BY region;
--> ERROR 42803: column "sales.product" must appear in the GROUP BY clause or be used in an aggregate function

-- A column that a subquery shows twice is two columns to GROUP BY: each set nulls the one that it has not.
SELECT a, b, count(*) FROM (SELECT product AS a, product AS b FROM sales) s GROUP BY GROUPING SETS ((a, b), (b), ()) ORDER BY 1, 2, 3;
--> a | b | count
--> gear | gear | 1
--> nut | nut | 3
--> NULL | gear | 1
--> NULL | nut | 3
--> NULL | NULL | 4
SELECT a, b, grouping(a), grouping(b) FROM sales, LATERAL (SELECT product AS a, product AS b) s
  GROUP BY GROUPING SETS ((a), (b)) ORDER BY 1, 2;
--> a | b | grouping | grouping
--> gear | NULL | 0 | 1
--> nut | NULL | 0 | 1
--> NULL | gear | 1 | 0
--> NULL | nut | 1 | 0
SELECT product, b FROM sales, LATERAL (SELECT product AS b) s GROUP BY GROUPING SETS ((product), (b)) ORDER BY 1, 2;
--> product | b
--> gear | NULL
--> nut | NULL
--> NULL | gear
--> NULL | nut
SELECT b FROM (SELECT product AS a, product AS b FROM sales) s GROUP BY a;
--> ERROR 42803: column "s.b" must appear in the GROUP BY clause or be used in an aggregate function
