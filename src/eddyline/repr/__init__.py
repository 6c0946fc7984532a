"""Values as the engine holds them: SQL types and their Arrow layouts, times, update batches, row errors."""
