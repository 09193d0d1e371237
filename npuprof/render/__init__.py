"""Records and events to what people and programs read: one output a file."""
