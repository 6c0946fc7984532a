"""A replica in processes of its own."""
