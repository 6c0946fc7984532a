"""The server beside PostgreSQL on the same machine, both in processes of their own, reached over loopback."""
