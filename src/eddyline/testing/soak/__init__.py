"""Many clients on one server for a while: answers checked, and nothing that grows or stays behind."""
