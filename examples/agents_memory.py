"""A memory shared by agents: what each believes, where they disagree, told as it changes.

python examples/agents_memory.py
"""

from __future__ import annotations

import asyncio

import eddyline

SCHEMA = """
    CREATE TABLE notes (id int PRIMARY KEY, agent text NOT NULL, topic text NOT NULL, belief text NOT NULL);

    -- the newest note of each agent on each topic
    CREATE VIEW beliefs AS
        SELECT DISTINCT ON (agent, topic) agent, topic, belief FROM notes ORDER BY agent, topic, id DESC;
    CREATE INDEX ON beliefs (topic);

    CREATE VIEW disputes AS
        SELECT topic, string_agg(agent || ' says ' || belief, ', ' ORDER BY agent) AS views
        FROM beliefs GROUP BY topic HAVING count(DISTINCT belief) > 1;
    CREATE DEFAULT INDEX ON disputes;
"""
NOTES = [
    ("scout", "bridge", "open"),
    ("planner", "bridge", "open"),
    ("scout", "bridge", "closed"),
    ("planner", "weather", "rain"),
    ("planner", "bridge", "closed"),
]


async def remember(db: eddyline.AsyncConnection) -> None:
    async with db.session() as session:
        for number, (agent, topic, belief) in enumerate(NOTES):
            await session.execute("INSERT INTO notes VALUES ($1, $2, $3, $4)", [number, agent, topic, belief])


async def watch(db: eddyline.AsyncConnection, ready: asyncio.Event) -> None:
    """Prints disputes as they begin and end; done when the first has been settled."""
    async with db.session() as session:
        changes = session.subscribe("disputes", progress=True)
        async for change in changes:
            ready.set()
            for update in change.updates.to_pylist():
                if update["mz_progressed"]:
                    continue
                print(f"{'dispute' if update['mz_diff'] > 0 else 'settled'} about {update['topic']}: {update['views']}")
                if update["mz_diff"] < 0:
                    await changes.aclose()
                    return


async def main() -> None:
    async with await eddyline.aconnect() as db:
        await db.executescript(SCHEMA)
        ready = asyncio.Event()
        watching = asyncio.create_task(watch(db, ready))
        await ready.wait()
        await remember(db)
        await asyncio.wait_for(watching, 60)
        for query in (
            "SELECT agent, belief FROM beliefs WHERE topic = 'bridge' ORDER BY agent",
            "SELECT * FROM disputes",
        ):
            print((await db.execute(query)).fetchall())


if __name__ == "__main__":
    asyncio.run(main())
