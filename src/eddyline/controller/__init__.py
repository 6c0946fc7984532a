"""The controller: collections, read holds, peeks and the replica, as sans-I/O state."""
