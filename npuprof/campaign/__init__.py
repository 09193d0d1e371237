"""A campaign: ticket, snapshot, warm-up, mirrored rounds, snapshot, record."""
